"""From a suite file to points, and from points to an ordered plan of tasks. Torch-free."""

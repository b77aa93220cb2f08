"""How hard an input is, by measures that no trained model here has a part in."""

"""The `frugalbench` command, one file per subcommand."""

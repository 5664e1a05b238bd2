"""How a module is called: one way to ask, found out for anyone's module."""

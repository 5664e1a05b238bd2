"""What goes on in a module: operations, attention, norms, caches, gradients; where two runs part."""

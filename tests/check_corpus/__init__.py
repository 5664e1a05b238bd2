"""Faults planted in models that lack them: the corpus that `oneblock check` is measured on."""

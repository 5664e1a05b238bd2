"""The bricks as one reads them in a single file: general here, with `spec` as what an export knows and folds away."""

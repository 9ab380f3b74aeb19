"""What a model says about data: densities, posteriors, expected counts."""

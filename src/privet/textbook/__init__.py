"""Lecture notes as code: continuous distributions, closed-form sensitivities, statistics of lists."""

"""Exact noise: integer samplers without floats, each with its own pmf, cdf, quantile and tail."""

from privet.noise.bernoulli import Bernoulli, BernoulliExp
from privet.noise.gaussian import DiscreteGaussian
from privet.noise.geometric import Geometric
from privet.noise.laplace import DiscreteLaplace
from privet.noise.staircase import DiscreteStaircase
from privet.noise.truncated import TruncatedLaplace
from privet.noise.uniform import UniformInteger

__all__ = [
    "Bernoulli",
    "BernoulliExp",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "Geometric",
    "TruncatedLaplace",
    "UniformInteger",
]

"""An independent audit of Privet: checks that trust none of its own claims."""

from privet.audit.choice import verify_choice
from privet.audit.everything import verify_all
from privet.audit.sampler import SamplerReport, verify_sampler

__all__ = ["SamplerReport", "verify_all", "verify_choice", "verify_sampler"]

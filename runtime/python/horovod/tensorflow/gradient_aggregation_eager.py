"""The place where scripts written for Horovod find LocalGradientAggregationHelperEager."""

from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelperEager  # noqa: F401

"""What-if slowdown: how much faster would a pipeline-parallel job be with even ranks, stages and micro-batches?"""

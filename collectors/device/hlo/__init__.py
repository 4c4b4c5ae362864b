"""Compiled programs (HLO modules): what they cost, which matrix products, collectives and buffers they hold.

Read from serialised protos alone, without XLA, whichever file carried them: a profile or a compiler's output.
"""

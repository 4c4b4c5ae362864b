"""The run's steps: how long did each take, which were kept, and how fast was the job?"""

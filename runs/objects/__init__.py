"""A store whose runs are objects: in a bucket of a cloud, or below a folder that several machines share."""

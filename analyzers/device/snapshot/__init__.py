"""A recorded history of device memory: who held what when most was held, what grew, what was reserved and not used."""

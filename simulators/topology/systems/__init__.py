"""One file for each kind of system that a topology's name may mean; `simulators.topology.SYSTEMS` lists them."""

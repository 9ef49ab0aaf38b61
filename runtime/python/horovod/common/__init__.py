"""The parts that every framework adapter shares: the runtime's C ABI, the world, process sets, exceptions."""

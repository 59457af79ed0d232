"""The parts that act by themselves, in turns of four phases: observe, plan, execute, record."""

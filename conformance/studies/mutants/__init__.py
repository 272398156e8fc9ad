"""Mutants of Kafka's bytecode: which changes of an instruction of the log layer do the recorded examples notice?"""

# What is fuzzed: TARGET.cpp defines LLVMFuzzerTestOneInput, and corpus/TARGET holds its seeds. Those of the second list
# see LibTorch.
set(PLUMB_FUZZ_PLAIN_TARGETS batch config data_directory result results split state tokenizer trouble_state)
set(PLUMB_FUZZ_TENSOR_TARGETS run safetensors)

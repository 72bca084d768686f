# What is fuzzed: TARGET.cpp defines LLVMFuzzerTestOneInput, and corpus/TARGET holds its seeds. Some need the tokenizers,
# some LibTorch.
set(PLUMB_FUZZ_TEXT_TARGETS data_directory tokenizer)
set(PLUMB_FUZZ_TENSOR_TARGETS model_folder run safetensors)
set(PLUMB_FUZZ_TARGETS batch config result results split state trouble_state
  ${PLUMB_FUZZ_TEXT_TARGETS} ${PLUMB_FUZZ_TENSOR_TARGETS})

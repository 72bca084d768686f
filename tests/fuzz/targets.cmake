# What is fuzzed: TARGET.cpp defines LLVMFuzzerTestOneInput, and corpus/TARGET holds its seeds. Some need the tokenizers,
# some LibTorch.
set(PLUMB_FUZZ_TEXT_TARGETS data_directory tokenizer)
set(PLUMB_FUZZ_TENSOR_TARGETS event_file model_folder run run_log safetensors)
set(PLUMB_FUZZ_TARGETS batch config gzip result results split state trouble_state
  ${PLUMB_FUZZ_TEXT_TARGETS} ${PLUMB_FUZZ_TENSOR_TARGETS})

// Training steps of llm.c on its own: built by llm_c_train.py with a clone of llm.c among the include directories.
// Reads numbers of steps from standard input, and writes for each step the loss before it and its seconds.
#define TESTING  // without llm.c's main
#include "train_gpt2.c"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// CHECKPOINT TOKENS ROWS LENGTH, where TOKENS holds the inputs and then the targets as int32.
int main(int count, char** words) {
  if (count != 5) return 2;
  const size_t rows = strtoul(words[3], NULL, 10), length = strtoul(words[4], NULL, 10);
  GPT2 model;
  gpt2_build_from_checkpoint(&model, words[1]);
  int* tokens = (int*)mallocCheck(2 * rows * length * sizeof(int));
  FILE* file = fopenCheck(words[2], "rb");
  freadCheck(tokens, sizeof(int), 2 * rows * length, file);
  fcloseCheck(file);
  int step = 0;
  for (int steps; scanf("%d", &steps) == 1;) {
    for (int i = 0; i < steps; ++i) {
      const double begin = now();
      gpt2_forward(&model, tokens, tokens + rows * length, rows, length);
      gpt2_zero_grad(&model);
      gpt2_backward(&model);
      gpt2_update(&model, 1e-4f, 0.9f, 0.98f, 1e-9f, 0.0f, ++step);
      printf("step %.9g %.9g\n", model.mean_loss, now() - begin);
    }
    fflush(stdout);
  }
  free(tokens);
  gpt2_free(&model);
  return 0;
}

// The program's first steps: settles how OpenMP waits, which it reads when it is loaded, then loads the rest and runs
// it.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  // Threads that wait spin for tens of microseconds, as long as our parallel loops are apart, not for milliseconds:
  // where another process wants the cores, spinning threads would take them from the one that is waited for.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  // An environment made for other programs can hold OpenBLAS (float64 alone) to an older processor's instructions.
  ::unsetenv("OPENBLAS_CORETYPE");
  void* program = ::dlopen("libplumb_program.so", RTLD_NOW | RTLD_GLOBAL);
  void* entry = program == nullptr ? nullptr : ::dlsym(program, "plumb_main");
  if (entry == nullptr) {
    std::fprintf(stderr, "plumb: error: %s\nhint: install Plumb again\n", ::dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(entry)(argc, argv);
}

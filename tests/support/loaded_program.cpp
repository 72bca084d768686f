// A process that has loaded the program and forks for every command line that it is sent, which spares tests the time
// that loading LibTorch takes. See loaded_program.h for the requests, which come through standard input.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

int program_main(int argc, char** argv);  // of apps/plumb/main.cpp

namespace {

/// The strings of a request, each with a zero at its end.
std::vector<char*> strings_of(char* begin, const char* end) {
  std::vector<char*> strings;
  for (bool begins = true; begin != end; begins = *begin++ == '\0') {
    if (begins) strings.push_back(begin);
  }
  return strings;
}

void redirect(const char* path, int flags, int descriptor) {
  const int file = ::open(path, flags, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  ::close(file);
}

/// In a fork, whose memory is its own.
int run(std::vector<char*> request) {
  redirect(request[1], O_RDONLY, STDIN_FILENO);
  redirect(request[2], O_WRONLY | O_CREAT, STDOUT_FILENO);
  redirect(request[3], O_WRONLY | O_CREAT, STDERR_FILENO);
  if (::chdir(request[0]) != 0) ::_exit(127);
  const int count = std::atoi(request[4]);
  std::vector<char*> words(request.begin() + 5, request.begin() + 5 + count);
  std::vector<char*> variables(request.begin() + 5 + count, request.end());
  words.push_back(nullptr);
  variables.push_back(nullptr);
  environ = variables.data();
  ::setenv("PLUMB_WHOLE_PROGRAM", "1", 1);  // whose module is loaded here
  std::exit(program_main(count, words.data()));  // here, where the environment is still alive
}

}  // namespace

int main() {
  // As the program does before it loads its libraries.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  ::unsetenv("OPENBLAS_CORETYPE");
  if (::dlopen("libplumb_program.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) return 1;

  const int requests = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  std::vector<char> buffer(size_t{1} << 20);
  ssize_t size = 0;
  while ((size = ::recv(requests, buffer.data(), buffer.size(), 0)) > 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(requests);
      return run(strings_of(buffer.data(), buffer.data() + size));
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) return 1;
    }
    if (::send(requests, &status, sizeof status, MSG_NOSIGNAL) < 0) return 1;
  }
}

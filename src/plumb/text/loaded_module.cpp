#include "plumb/text/loaded_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// Modules are in the directory of the library that contains this function.
std::filesystem::path path_of_module(const std::string& name) {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&load_module), &info);
  return std::filesystem::absolute(info.dli_fname).parent_path() / fmt::format("lib{}.so", name);
}

void* open_module(const char* path, ModuleScope scope) {
  if (scope == ModuleScope::local) return ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The sanitizer's dlopen rejects RTLD_DEEPBIND, which is unsafe if memory changes ownership; here none does.
  void* library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<void* (*)(const char*, int)>(::dlsym(library, "dlopen"))(path, kFlags);
#else
  return ::dlopen(path, kFlags);
#endif
}

}  // namespace

void* load_module(const std::string& name, const char* entry, const std::string& what, ModuleScope scope) {
  const std::string path = path_of_module(name).string();
  void* module = open_module(path.c_str(), scope);
  void* function = module == nullptr ? nullptr : ::dlsym(module, entry);
  if (function == nullptr) throw Error(fmt::format("{}: {} cannot be loaded", path, what), "reinstall Plumb");
  return function;
}

}  // namespace plumb

// Errors of the library as plumb.Error, in every extension module of the package.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <string>

#include "plumb/base/error.h"

namespace plumb {

/// Translates what the calling module's functions throw. plumb._plumb has the type.
inline void translate_exceptions() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const std::string hint = error.hint().empty() ? "" : "\n" + error.hint();
      const pybind11::object type = pybind11::module_::import("plumb._plumb").attr("Error");
      PyErr_SetString(type.ptr(), (error.what() + hint).c_str());
    } catch (python_error& error) {  // from a function of Python that autograd calls
      error.restore();
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(thrown);
    }
  });
}

}  // namespace plumb

#include "simulated_device.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <malloc.h>
#include <torch/library.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "plumb/ops/device.h"

namespace plumb::test {

Traffic& traffic() {
  static Traffic counts;
  return counts;
}

namespace {

bool is_here(const Tensor& tensor) { return tensor.device().type() == kSimulated; }

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) PLUMB_ALLOCATE_CONST override {
    void* place = bytes > 0 ? std::malloc(bytes) : nullptr;
    if (bytes > 0 && place == nullptr) throw std::bad_alloc();
    if (bytes > 0) report(place, static_cast<int64_t>(::malloc_usable_size(place)));
    return {place, place, &release, simulated_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  PLUMB_COPY_DATA

 private:
  static void report(void* place, int64_t bytes) {
    c10::reportMemoryUsageToProfiler(place, bytes, 0, 0, simulated_device());
  }
  static void release(void* place) {
    if (place == nullptr) return;
    report(place, -static_cast<int64_t>(::malloc_usable_size(place)));
    std::free(place);
  }
};

/// One device with one stream, on which everything runs synchronously.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kSimulated; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return simulated_device(); }
  c10::Device exchangeDevice(c10::Device) const override { return simulated_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, simulated_device());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};

#if TORCH_VERSION_MAJOR >= 2
/// The hooks that an accelerator must register.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};
#endif

c10::Allocator* memory() {
  static Memory instance;
  return &instance;
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> type,
                     c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
  return Tensor(at::detail::empty_strided_generic(
      size, stride, memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat)));
}

Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
             c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return Tensor(at::detail::empty_generic(size, memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                          type.value_or(at::kFloat), format));
}

/// The same memory as a CPU tensor; an empty tensor gets a new one, so that it can be resized.
Tensor on_host(const Tensor& tensor) {
  if (tensor.numel() == 0) return at::empty(tensor.sizes(), tensor.scalar_type());
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type()));
}

Tensor copy_from(const Tensor& self, const Tensor& to, bool) {
  if (is_here(self) != is_here(to)) ++(is_here(self) ? traffic().reads : traffic().uploads);
  Tensor target = is_here(to) ? on_host(to) : to;
  target.copy_(is_here(self) ? on_host(self) : self);
  return to;
}

/// Gives a tensor another size; its elements are lost.
const Tensor& set_size(const Tensor& self, at::IntArrayRef size, c10::optional<at::MemoryFormat>) {
  const Tensor fresh = empty(size, self.scalar_type(), {}, {}, {}, {});
  self.unsafeGetTensorImpl()->shallow_copy_from(fresh.getIntrusivePtr());
  return self;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar local_scalar(const Tensor& self) {
  ++traffic().reads;
  return on_host(self).item();
}

/// Any other operation: runs on the CPU, on the tensors' own memory.
void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t begin = stack->size() - count;
  std::vector<std::pair<Tensor, Tensor>> given;  // on the device, on the host
  const auto host = [&](const Tensor& tensor) {
    if (!tensor.defined() || (tensor.device().is_cpu() && tensor.dim() == 0)) return tensor;
    TORCH_CHECK(is_here(tensor), "Expected all tensors to be on the same device, but ", schema.name(), " was given ",
                tensor.device(), " beside ", simulated_device());
    given.emplace_back(tensor, on_host(tensor));
    return given.back().second;
  };
  for (size_t i = begin; i < begin + count; ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = host(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> tensors;
      for (const Tensor& tensor : value.toTensorVector()) tensors.push_back(host(tensor));
      value = c10::List<Tensor>(tensors);
    } else if (value.isOptionalTensorList()) {
      c10::List<c10::optional<Tensor>> tensors;
      for (const c10::optional<Tensor> tensor : value.toOptionalTensorList()) {
        tensors.push_back(tensor ? c10::optional<Tensor>(host(*tensor)) : c10::nullopt);
      }
      value = tensors;
    } else if (value.isDevice()) {
      value = at::Device(at::kCPU);
    }
  }
  op.callBoxed(stack);
  const auto back = [&](const Tensor& tensor) -> Tensor {
    if (!tensor.defined()) return tensor;
    for (const auto& [here, there] : given) {
      if (there.is_same(tensor)) {
        if (here.sizes() == there.sizes()) return here;
        set_size(here, there.sizes(), c10::nullopt);  // the operation has resized it
        on_host(here).copy_(there);
        return here;
      }
    }
    Tensor result = empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type(), {}, {}, {});
    on_host(result).copy_(tensor);
    return result;
  };
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = back(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> tensors;
      for (const Tensor& tensor : value.toTensorVector()) tensors.push_back(back(tensor));
      value = c10::List<Tensor>(tensors);
    }
  }
}

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
#if TORCH_VERSION_MAJOR >= 2
// Without a name and hooks it would not count as this machine's accelerator, and a LibTorch built for CUDA would look
// for a GPU instead. LibTorch drives one kind of accelerator in a process: a GPU, if there is one.
[[maybe_unused]] const bool kNamed = [] {
  if (ops::available_devices().size() > 1) return false;
  static Hooks hooks;
  c10::register_privateuse1_backend("simulated");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();
#endif
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, memory());

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("resize_", &set_size);
  m.impl("view", [](const Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); });
  m.impl("_reshape_alias", [](const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
    return at::native::_reshape_alias(self, size, stride);
  });
  m.impl("as_strided",
         [](const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, c10::optional<int64_t> offset) {
           return at::native::as_strided_tensorimpl(self, size, stride, offset);
         });
}

}  // namespace plumb::test

// A program that uses the installed package: find_package(plumb), headers under <plumb/...>.
#include <plumb/base/config.h>
#include <plumb/base/error.h>

#include <cstdint>
#include <iostream>
#include <string>

struct Shape {
  int64_t layers = 6;
  std::string residual = "post-ln";
};

void describe(plumb::Fields& fields, Shape& shape) {
  fields("layers", shape.layers);
  fields("residual", shape.residual);
}

int main() try {
  auto config = plumb::Config::from_string("[model]\nlayers = 2\n", "example.toml");
  config.set("model.residual=pre-ln");
  Shape shape;
  config.read("model", shape);
  std::cout << shape.layers << ' ' << shape.residual << '\n';
  return shape.layers == 2 && shape.residual == "pre-ln" ? 0 : 1;
} catch (const plumb::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

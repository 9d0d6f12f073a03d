// Runs all tests, or those whose name contains the first argument.
#include <exception>
#include <iostream>
#include <string>

#include "tests/check.hpp"

int main(int n_arguments, char** arguments) {
  using namespace blockgreedy::testing;
  const std::string wanted = n_arguments > 1 ? arguments[1] : "";
  int n_run = 0, n_failed = 0;
  for (const Test& test : tests()) {
    if (test.name.find(wanted) == std::string::npos) continue;
    const int before = failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name.c_str(), 0, std::string("unexpected exception: ") + error.what());
    }
    ++n_run;
    if (failures() > before) {
      ++n_failed;
      std::cerr << "FAILED: " << test.name << "\n";
    }
  }
  std::cout << n_run << " C++ tests, " << n_failed << " failed\n";
  return n_failed > 0 || n_run == 0;
}

// A small test framework: TEST("name") { … } registers itself, and the CHECK macros count what fails and go on.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace blockgreedy::testing {

struct Test {
  std::string name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  ++failures();
  std::cerr << file << ":" << line << ": " << what << "\n";
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream what;
  what.precision(17);
  what << text << ": " << a << " is not " << b;
  fail(file, line, what.str());
}

template <class Exception, class F>
void check_throws(const F& f, const char* text, const char* file, int line) {
  try {
    f();
  } catch (const Exception&) {
    return;
  }
  fail(file, line, std::string(text) + " throws nothing");
}

}  // namespace blockgreedy::testing

#define BLOCKGREEDY_JOIN_(a, b) a##b
#define BLOCKGREEDY_JOIN(a, b) BLOCKGREEDY_JOIN_(a, b)
#define BLOCKGREEDY_TEST(name, body)                                                                \
  static void body();                                                                               \
  static const blockgreedy::testing::Registration BLOCKGREEDY_JOIN(body, _registered)(name, &body); \
  static void body()
#define TEST(name) BLOCKGREEDY_TEST(name, BLOCKGREEDY_JOIN(test_at_line_, __LINE__))
#define CHECK(condition) \
  ((condition) ? void() : blockgreedy::testing::fail(__FILE__, __LINE__, #condition " is false"))
#define CHECK_EQUAL(a, b) blockgreedy::testing::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_THROWS(exception, expression) \
  blockgreedy::testing::check_throws<exception>([&] { (void)(expression); }, #expression, __FILE__, __LINE__)

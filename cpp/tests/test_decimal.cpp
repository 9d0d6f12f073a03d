#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/random.hpp"
#include "data/decimal.hpp"
#include "tests/check.hpp"

namespace blockgreedy {
namespace {

struct Reading {
  DecimalFault fault;
  double value;
  std::ptrdiff_t length;
};

Reading read(const std::string& number) {
  const std::string text = number + "\n";
  const char* p = text.data();
  Reading reading{DecimalFault::none, -1, 0};
  reading.fault = read_decimal(p, text.data() + text.size(), reading.value);
  reading.length = p - text.data();
  return reading;
}

bool reads_as_strtod(const std::string& number) {
  const Reading reading = read(number);
  const double wanted = std::strtod(number.c_str(), nullptr);
  return reading.fault == DecimalFault::none && std::memcmp(&reading.value, &wanted, sizeof wanted) == 0 &&
         reading.length == static_cast<std::ptrdiff_t>(number.size());
}

TEST("decimals are rounded as strtod rounds them") {
  for (const char* number : {"0",
                             "-0",
                             "1",
                             "+1",
                             "-1.5",
                             ".5",
                             "5.",
                             "1e3",
                             "1E-3",
                             "1e+22",
                             "1e23",
                             "12345678.12345678",
                             "0.1",
                             "9007199254740993",
                             "9007199254740992.5",
                             "1.7976931348623157e308",
                             "4.9e-324",
                             "2.2250738585072011e-308",
                             "123456789012345678901234567890",
                             "0.00000000000000000000000000000000012345678901234567890123",
                             "1e-400",
                             "0e999999999999",
                             "00000000000000000000000001",
                             "3.00000000000000000000000000000000000001"}) {
    CHECK(reads_as_strtod(number));
  }
}

TEST("random decimals are rounded as strtod rounds them") {
  Random random(11);
  for (int k = 0; k < 20000; ++k) {
    char number[64];
    const int digits = static_cast<int>(random.below(20)), exponent = static_cast<int>(random.below(80)) - 40;
    std::snprintf(number, sizeof number, "%.*ee%d", digits, random.uniform(), exponent);
    *std::strchr(number, 'e') = '\0';  // the mantissa as %e writes it, with an exponent of our own
    const std::string text = std::string(number) + "e" + std::to_string(exponent);
    if (!reads_as_strtod(text)) return testing::fail(__FILE__, __LINE__, text + " is read wrongly");
  }
}

TEST("what is no decimal leaves the position alone") {
  for (const char* text : {"", "-", "+", ".", "e5", "-.e1", "nan", "inf", "1e", "1e+", "x"}) {
    const Reading reading = read(text);
    CHECK(reading.fault == DecimalFault::no_number);
    CHECK_EQUAL(reading.length, 0);
  }
  CHECK(read("1e400").fault == DecimalFault::out_of_range);
  CHECK(read("-123456789e400").fault == DecimalFault::out_of_range);
}

TEST("a decimal ends where its grammar ends") {
  CHECK_EQUAL(read("12:3").length, 2);
  CHECK_EQUAL(read("0x10").length, 1);
  CHECK_EQUAL(read("1.2.3").length, 3);
  CHECK_EQUAL(read("1.2.3").value, 1.2);
}

TEST("eight digits at once") {
  std::uint64_t value = 0;
  CHECK(eight_digits("12345678", value));
  CHECK_EQUAL(value, 12345678U);
  CHECK(eight_digits("00000000", value));
  CHECK_EQUAL(value, 0U);
  CHECK(!eight_digits("1234567:", value));
  CHECK(!eight_digits("/2345678", value));
  CHECK(!eight_digits("1234 678", value));
}

}  // namespace
}  // namespace blockgreedy

// Decimal numbers in text, correctly rounded: what strtod gives in the C locale, several times faster.
//
// Grammar: [+-] digits [. digits] [e [+-] digits], with digits on at least one side of the point. No nan, inf or hex.
// Every number must be followed by a character that cannot belong to it: the end of the text is not tested.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace blockgreedy {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Eight characters at once, as long as all of them are digits.
inline bool eight_digits(const char* p, std::uint64_t& value) {
  if constexpr (std::endian::native != std::endian::little) return false;
  std::uint64_t text;
  std::memcpy(&text, p, 8);
  constexpr std::uint64_t high = 0xF0F0F0F0F0F0F0F0, six = 0x0606060606060606, threes = 0x3333333333333333;
  if (((text & high) | (((text + six) & high) >> 4)) != threes) return false;
  text -= 0x3030303030303030;
  text = text * 10 + (text >> 8);  // pairs, in every second byte
  constexpr std::uint64_t pairs = 0x000000FF000000FF;
  value = ((text & pairs) * (100 + (1000000ULL << 32)) + ((text >> 16) & pairs) * (1 + (10000ULL << 32))) >> 32;
  return true;
}

enum class DecimalFault { none, no_number, out_of_range };

// Reads the number at p and moves p behind it; on a fault p stays. Bytes up to `readable` may be read, whatever they
// are.
inline DecimalFault read_decimal(const char*& p, const char* readable, double& value) {
  static constexpr std::array<double, 23> powers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char* q = p;
  const bool negative = *q == '-';
  q += *q == '-' || *q == '+';
  const char* const unsigned_part = q;
  std::uint64_t mantissa = 0;
  while (is_digit(*q)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q++ - '0');
  std::int64_t n_digits = q - unsigned_part, exponent = 0;
  if (*q == '.') {
    const char* const fraction = ++q;
    for (std::uint64_t eight; readable - q >= 8 && eight_digits(q, eight); q += 8) {
      mantissa = 100000000 * mantissa + eight;
    }
    while (is_digit(*q)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q++ - '0');
    exponent = fraction - q;
    n_digits += q - fraction;
  }
  if (n_digits == 0) return DecimalFault::no_number;
  if (*q == 'e' || *q == 'E') {
    ++q;
    const bool falls = *q == '-';
    q += *q == '-' || *q == '+';
    if (!is_digit(*q)) return DecimalFault::no_number;
    std::int64_t written = 0;
    for (; is_digit(*q); ++q) written = written < 100000000 ? 10 * written + (*q - '0') : written;
    exponent += falls ? -written : written;
  }
  // Both the mantissa and the power of ten are exact, so one rounding happens: the right one.
  if (n_digits <= 19 && mantissa <= (1ULL << 53) && exponent >= -22 && exponent <= 22) {
    const auto whole = static_cast<double>(mantissa);
    value = exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent];
  } else {
    const auto [end, error] = std::from_chars(unsigned_part, q, value);
    if (error == std::errc::result_out_of_range) {
      const char* first = unsigned_part;
      for (; *first == '0' || *first == '.'; ++first) n_digits -= *first == '0';
      if (n_digits + exponent > 0) return DecimalFault::out_of_range;
      value = 0;  // underflow gives 0, as with strtod
    } else if (error != std::errc() || end != q) {
      return DecimalFault::no_number;
    }
  }
  if (negative) value = -value;
  p = q;
  return DecimalFault::none;
}

}  // namespace blockgreedy

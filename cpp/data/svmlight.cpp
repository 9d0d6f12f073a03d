#include "data/svmlight.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "data/decimal.hpp"

namespace blockgreedy {

namespace {

constexpr std::int64_t largest_index = INT32_MAX - 1;  // so that there are at most 2³¹ − 1 features

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Every line ends in a newline, so none of these runs past one.
const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}
bool ends_line(const char* p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }
bool ends_token(const char* p) { return is_blank(*p) || ends_line(p); }
const char* next_line(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
}

struct Counts {
  std::int64_t lines = 0, colons = 0;
};

Counts count(const char* p, const char* end) {
  Counts total;
  while (p < end) {
    // sums of bytes, which vectorise, as long as they cannot overflow
    const char* const stop = p + std::min<std::ptrdiff_t>(end - p, 255);
    std::uint8_t lines = 0, colons = 0;
    for (; p < stop; ++p) {
      lines = static_cast<std::uint8_t>(lines + (*p == '\n'));
      colons = static_cast<std::uint8_t>(colons + (*p == ':'));
    }
    total.lines += lines;
    total.colons += colons;
  }
  return total;
}

const char* expected_number(DecimalFault fault, const char* number) {
  return fault == DecimalFault::out_of_range ? "a number within the range of float64" : number;
}

// Where a text is wrong, and what should stand there; `at` null: nowhere.
struct TextFault {
  const char* at = nullptr;
  const char* expected = nullptr;
};

// The label and the qid, which is skipped; leaves p at the first feature or at the end of the line.
TextFault read_row_head(const char*& p, const char* end, double& label) {
  const char* const start = p;
  if (const auto fault = read_decimal(p, end, label); fault != DecimalFault::none) {
    return {start, expected_number(fault, "a label, which is a number")};
  }
  if (*p == ',') return {p, "one label per row (several are not supported)"};
  if (*p == ':') return {start, "a label before the first feature"};
  if (!ends_token(p)) return {start, "a label, which is a number"};
  p = skip_blanks(p);
  if (p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':') {  // by turns: a line may end at any of them
    const char* const digits = p += 4;
    while (is_digit(*p)) ++p;
    if (p == digits || !ends_token(p)) return {digits, "a whole number after qid:"};
    p = skip_blanks(p);
  }
  return {};
}

}  // namespace

SvmlightText::SvmlightText(const char* text, std::int64_t size, ThreadTeam& team, std::int64_t chunk_bytes)
    : text_(text), end_(text + size) {
  if (size > 0 && end_[-1] != '\n') throw std::invalid_argument("text must end in a newline");
  for (const char* begin = text_; begin < end_;) {
    const char* const inside = begin + std::min<std::int64_t>(chunk_bytes, end_ - begin) - 1;
    const char* const end = next_line(inside, end_);
    chunks_.push_back({begin, end});
    begin = end;
  }
  team.for_each(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t k, int) {
    Chunk& chunk = chunks_[k];
    const Counts counts = count(chunk.begin, chunk.end);
    chunk.lines = counts.lines;
    chunk.colons = counts.colons;
  });
  for (Chunk& chunk : chunks_) {
    chunk.first_row = max_rows_;
    chunk.first_entry = max_entries_;
    max_rows_ += chunk.lines;
    max_entries_ += chunk.colons;
  }
}

template <class T>
void SvmlightText::parse(const SvmlightRows<T>& out, int base, bool strict, ThreadTeam& team) {
  rows_ = entries_ = 0;
  team.for_each(static_cast<std::int64_t>(chunks_.size()),
                [&](std::int64_t k, int) { parse_chunk(chunks_[k], out, base, strict); });
  if (team.stopped()) return;
  for (const Chunk& chunk : chunks_) {
    if (chunk.fault_at != nullptr) return report(chunk);
  }
  close_up(out);
}

// Row k of the chunk leaves its number of entries in indptr[first_row + k + 1]; close_up sums them.
template <class T>
void SvmlightText::parse_chunk(Chunk& chunk, const SvmlightRows<T>& out, int base, bool strict) const {
  std::int32_t* indices = out.indices + chunk.first_entry;
  T* data = out.data + chunk.first_entry;
  std::int64_t row = chunk.first_row;
  std::int32_t smallest = INT32_MAX, largest = -1;
  const auto wrong = [&chunk](const char* at, const char* expected) {
    chunk.fault_at = at;
    chunk.expected = expected;
  };
  const char* p = chunk.begin;
  while (p < chunk.end) {
    p = skip_blanks(p);
    if (ends_line(p)) {
      p = next_line(p, end_);
      continue;
    }
    double number;
    if (const auto fault = read_row_head(p, end_, number); fault.at) return wrong(fault.at, fault.expected);
    out.labels[row] = number;
    std::int64_t before = -1;
    std::int32_t* const first = indices;
    while (!ends_line(p)) {
      const char* start = p;
      std::int64_t index = 0;
      while (is_digit(*p) && index <= largest_index) index = 10 * index + (*p++ - '0');
      if (p == start) return wrong(start, "a feature, written index:value");
      if (index > largest_index) return wrong(start, "a feature index of at most 2147483646");
      if (*p != ':') return wrong(p, "':' between the index of a feature and its value");
      if (index <= before) {
        return wrong(start, index == before ? "each feature once in a row" : "features in ascending order");
      }
      if (strict && index < base) return wrong(start, "a feature index of at least 1 (indices count from 1 here)");
      before = index;
      start = ++p;
      if (const auto fault = read_decimal(p, end_, number); fault != DecimalFault::none) {
        return wrong(start, expected_number(fault, "a value, which is a number"));
      }
      if (!ends_token(p)) return wrong(start, "a value, which is a number");
      if (std::is_same_v<T, float> && std::abs(number) > FLT_MAX) {
        return wrong(start, "a number within the range of float32");
      }
      *indices++ = static_cast<std::int32_t>(index - base);
      *data++ = static_cast<T>(number);
      p = skip_blanks(p);
    }
    if (indices != first) {
      smallest = std::min(smallest, *first);
      largest = std::max(largest, indices[-1]);
    }
    out.indptr[++row] = indices - first;
    p = next_line(p, end_);
  }
  chunk.rows = row - chunk.first_row;
  chunk.entries = indices - (out.indices + chunk.first_entry);
  chunk.smallest = smallest;
  chunk.largest = largest;
}

template <class T>
void SvmlightText::close_up(const SvmlightRows<T>& out) {
  out.indptr[0] = 0;
  for (const Chunk& chunk : chunks_) {
    const auto n = static_cast<std::size_t>(chunk.entries), rows = static_cast<std::size_t>(chunk.rows);
    if (chunk.first_entry != entries_) {
      std::memmove(out.indices + entries_, out.indices + chunk.first_entry, n * sizeof(std::int32_t));
      std::memmove(out.data + entries_, out.data + chunk.first_entry, n * sizeof(T));
    }
    if (chunk.first_row != rows_) {
      std::memmove(out.labels + rows_, out.labels + chunk.first_row, rows * sizeof(double));
    }
    for (std::int64_t k = 0; k < chunk.rows; ++k) {
      const std::int64_t length = out.indptr[chunk.first_row + k + 1];
      out.indptr[rows_ + k + 1] = out.indptr[rows_ + k] + length;
    }
    rows_ += chunk.rows;
    entries_ += chunk.entries;
    smallest_ = std::min(smallest_, chunk.smallest);
    largest_ = std::max(largest_, chunk.largest);
  }
}

void SvmlightText::report(const Chunk& chunk) {
  const char* line = chunk.fault_at;
  while (line > chunk.begin && line[-1] != '\n') --line;
  fault_.line = chunk.first_row + count(chunk.begin, line).lines + 1;
  fault_.column = chunk.fault_at - line + 1;
  fault_.expected = chunk.expected;
  const char* stop = chunk.fault_at;
  while (!ends_token(stop) && stop - chunk.fault_at < 40) ++stop;
  fault_.found.assign(chunk.fault_at, stop);
}

template void SvmlightText::parse(const SvmlightRows<float>&, int, bool, ThreadTeam&);
template void SvmlightText::parse(const SvmlightRows<double>&, int, bool, ThreadTeam&);

}  // namespace blockgreedy

// A coverage-guided search for text that the svmlight parser reads wrongly, reads past the end of, or hangs on.
//
//   make fuzz SECONDS=600
//
// The oracle is a second reader, written for clarity alone: lines and words by std::string, numbers by a regular
// grammar and strtod. Both must accept the same text and find the same rows, bit for bit. Needs clang.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "data/svmlight.hpp"

namespace {

struct Rows {
  std::vector<double> labels, values;
  std::vector<std::int64_t> lengths, indices;
};

bool is_decimal(const std::string& word) {
  std::size_t k = 0, digits = 0;
  const auto skip_digits = [&] {
    for (; k < word.size() && word[k] >= '0' && word[k] <= '9'; ++k) ++digits;
  };
  if (k < word.size() && (word[k] == '-' || word[k] == '+')) ++k;
  skip_digits();
  if (k < word.size() && word[k] == '.') ++k, skip_digits();
  if (digits == 0) return false;
  if (k < word.size() && (word[k] == 'e' || word[k] == 'E')) {
    ++k;
    if (k < word.size() && (word[k] == '-' || word[k] == '+')) ++k;
    digits = 0;
    skip_digits();
    if (digits == 0) return false;
  }
  return k == word.size();
}

bool read_number(const std::string& word, double& value) {
  if (!is_decimal(word)) return false;
  value = std::strtod(word.c_str(), nullptr);
  return std::isfinite(value);
}

bool is_whole(const std::string& word) { return !word.empty() && word.find_first_not_of("0123456789") == word.npos; }

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t", k);
    if (begin == line.npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    k = end;
  }
  return words;
}

bool read_line(std::string line, Rows& rows) {
  if (const auto comment = line.find('#'); comment != line.npos) {
    line.resize(comment);
  } else if (!line.empty() && line.back() == '\r') {
    line.pop_back();
  }
  const auto words = words_of(line);
  if (words.empty()) return true;
  double label;
  if (!read_number(words[0], label)) return false;
  rows.labels.push_back(label);
  std::size_t k = 1;
  if (k < words.size() && words[k].rfind("qid:", 0) == 0) {
    if (!is_whole(words[k].substr(4))) return false;
    ++k;
  }
  std::int64_t before = -1, length = 0;
  for (; k < words.size(); ++k, ++length) {
    const auto colon = words[k].find(':');
    if (colon == std::string::npos || !is_whole(words[k].substr(0, colon))) return false;
    const double index = std::strtod(words[k].substr(0, colon).c_str(), nullptr);
    double value;
    if (index > 2147483646.0 || !read_number(words[k].substr(colon + 1), value)) return false;
    if (static_cast<std::int64_t>(index) <= before) return false;
    before = static_cast<std::int64_t>(index);
    rows.indices.push_back(before);
    rows.values.push_back(value);
  }
  rows.lengths.push_back(length);
  return true;
}

bool read_text(const std::string& text, Rows& rows) {
  for (std::size_t k = 0; k < text.size();) {
    const std::size_t end = text.find('\n', k);
    if (!read_line(text.substr(k, end - k), rows)) return false;
    k = end + 1;
  }
  return true;
}

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

bool same_bits(const double* a, const std::vector<double>& b) {
  return b.empty() || std::memcmp(a, b.data(), b.size() * sizeof(double)) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // In memory of just this size, so that a read past the end is seen.
  std::vector<char> text(bytes, bytes + size);
  text.push_back('\n');
  text.shrink_to_fit();
  blockgreedy::ThreadTeam team(1);
  constexpr std::int64_t chunk_bytes = 24;  // many chunks, and lines longer than one
  blockgreedy::SvmlightText parser(text.data(), static_cast<std::int64_t>(text.size()), team, chunk_bytes);
  const auto rows = static_cast<std::size_t>(parser.max_rows()),
             entries = static_cast<std::size_t>(parser.max_entries());
  std::vector<std::int64_t> indptr(rows + 1);
  std::vector<std::int32_t> indices(entries);
  std::vector<double> data(entries), labels(rows);
  parser.parse(blockgreedy::SvmlightRows<double>{indptr.data(), indices.data(), data.data(), labels.data()}, 0, true,
               team);
  Rows expected;
  const bool readable = read_text(std::string(text.begin(), text.end()), expected);
  demand(readable == (parser.fault().line == 0), "both accept the text, or none");
  if (!readable) {
    demand(parser.fault().line <= parser.lines() && parser.fault().column >= 1, "the fault lies in the text");
    return 0;
  }
  demand(parser.rows() == static_cast<std::int64_t>(expected.labels.size()), "as many rows");
  demand(parser.entries() == static_cast<std::int64_t>(expected.values.size()), "as many entries");
  demand(same_bits(labels.data(), expected.labels), "the same labels");
  demand(same_bits(data.data(), expected.values), "the same values");
  for (std::size_t k = 0; k < expected.indices.size(); ++k) {
    demand(indices[k] == expected.indices[k], "the same indices");
  }
  for (std::size_t k = 0; k < expected.lengths.size(); ++k) {
    demand(indptr[k + 1] - indptr[k] == expected.lengths[k], "the same lengths of rows");
  }
  return 0;
}

// Svmlight text → rows: "label [qid:number] index:value index:value … # comment", a line per row.
//
// Text is cut into chunks of whole lines. A first pass counts what they can hold at most, which says where each chunk
// may write; a second one reads them, straight into the caller's arrays. Colons in comments and qid make the first
// pass overestimate; the gaps are closed at the end. The fault reported is the first one in the text, whichever
// thread finds one first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"

namespace blockgreedy {

struct SvmlightFault {
  std::int64_t line = 0, column = 0;  // from 1, the column in bytes; line 0: there is none
  std::string expected, found;
};

template <class T>
struct SvmlightRows {
  std::int64_t* indptr;  // one more than rows
  std::int32_t* indices;
  T* data;
  double* labels;
};

class SvmlightText {
 public:
  // `size` bytes that end in a newline and outlive this object.
  SvmlightText(const char* text, std::int64_t size, ThreadTeam& team, std::int64_t chunk_bytes = 1 << 20);

  std::int64_t max_rows() const { return max_rows_; }
  std::int64_t max_entries() const { return max_entries_; }
  std::int64_t lines() const { return max_rows_; }  // any line may be a row

  // Indices are lowered by `base`; one below base is a fault if `strict`, and otherwise negative in the result.
  template <class T>
  void parse(const SvmlightRows<T>& out, int base, bool strict, ThreadTeam& team);

  // After parse:
  const SvmlightFault& fault() const { return fault_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t entries() const { return entries_; }
  std::int32_t smallest() const { return smallest_; }  // indices as parsed; 2³¹ − 1 and −1 where there are none
  std::int32_t largest() const { return largest_; }

 private:
  struct Chunk {
    const char *begin, *end;
    std::int64_t first_row = 0, first_entry = 0;  // where it may write
    std::int64_t lines = 0, colons = 0, rows = 0, entries = 0;
    std::int32_t smallest = INT32_MAX, largest = -1;
    const char* fault_at = nullptr;
    const char* expected = nullptr;
  };

  template <class T>
  void parse_chunk(Chunk& chunk, const SvmlightRows<T>& out, int base, bool strict) const;
  template <class T>
  void close_up(const SvmlightRows<T>& out);
  void report(const Chunk& chunk);

  const char* text_;
  const char* end_;
  std::vector<Chunk> chunks_;
  std::int64_t max_rows_ = 0, max_entries_ = 0, rows_ = 0, entries_ = 0;
  std::int32_t smallest_ = INT32_MAX, largest_ = -1;
  SvmlightFault fault_;
};

}  // namespace blockgreedy

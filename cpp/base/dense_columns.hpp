// A dense matrix that stands row after row, copied column after column.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.hpp"

namespace blockgreedy {

// In tiles of whole cache lines on both sides: going down one column at a time would fetch a line of each row for a
// single number.
template <class T>
void copy_columns(const T* rows, std::int64_t n_rows, std::int64_t n_cols, T* columns, ThreadTeam& team) {
  constexpr std::int64_t height = 16, width = 64 / sizeof(T), tiles_per_part = 8;
  const std::int64_t n_tiles = (n_rows + height - 1) / height;
  const std::int64_t n_parts = (n_tiles + tiles_per_part - 1) / tiles_per_part;
  team.for_work(n_parts, n_rows * n_cols, [&](std::int64_t part) {
    const std::int64_t last_tile = std::min(n_tiles, (part + 1) * tiles_per_part);
    for (std::int64_t tile = part * tiles_per_part; tile < last_tile; ++tile) {
      const std::int64_t first = tile * height, count = std::min(height, n_rows - first);
      for (std::int64_t j = 0; j < n_cols; j += width) {
        const std::int64_t end = std::min(n_cols, j + width);
        for (std::int64_t c = j; c < end; ++c) {
          const T* from = rows + first * n_cols + c;
          T* to = columns + c * n_rows + first;
          for (std::int64_t r = 0; r < count; ++r) to[r] = from[r * n_cols];
        }
      }
    }
  });
}

}  // namespace blockgreedy

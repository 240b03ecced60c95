// MUM (Rodinia, mummergpu): where short queries match a long reference of bases, as in sequencing. The first kernel
// finds, for every start in every query, the suffix of the reference that matches it for longest, and how many others
// match for long enough; the second one writes down where these are. The index is not the program's suffix tree but an
// array of sorted suffixes with the lengths of common prefixes: steps through it wait for one scattered word after the
// other, most of which L2 has. Records of all starts go from one kernel to the next.
#include <set>
#include <unordered_map>
#include <utility>

#include "pipeline/program.h"

using Bases = unsigned long long;  ///< 32 bases, two bits each, the first one in the highest bits

constexpr int kThreads = 64, kMost = 32;                         ///< bases of a query
constexpr int kTableBases = 6, kTable = 1 << (2 * kTableBases);  ///< suffixes by their first bases
constexpr int kAlignments = 4;                                   ///< that are written of a start, at most

/// What matches a start for long enough: suffixes from `first` up to `end`, as numbers in the sorted array; `best` for
/// `length` bases, which is the most.
struct __align__(16) Record {
  int first, end, best, length;
};

/// Where a start lies in the reference, and for how many bases.
struct __align__(8) Alignment {
  int position, length;
};

/// The reference, sorted.
struct Index {
  const ulonglong2* text;       ///< 64 bases each, from every 32nd base on
  const int* suffixes;          ///< positions, sorted by the 32 bases from there on
  const unsigned char* common;  ///< bases that suffix i has in common with suffix i - 1
  const int2* table;  ///< the first suffix that does not begin below these bases, and the first that begins above
  int count;
};

/// Of a suffix. Loads that lie scattered pass by L1, which would read a line for each.
__device__ inline Bases BasesOf(const Index& index, int suffix) {
  const int position = __ldcg(&index.suffixes[suffix]), shift = position % kMost * 2;
  const ulonglong2 text = __ldcg(&index.text[position / kMost]);
  return shift == 0 ? text.x : text.x << shift | text.y >> (64 - shift);
}

__device__ inline int Common(Bases a, Bases b) { return __clzll(static_cast<long long>(a ^ b)) / 2; }

/// A start a thread: `starts` of each query. A match is at least as long as what the table is made of.
__global__ void __launch_bounds__(kThreads)
    Search(Index index, const Bases* queries, Record* records, int count, int starts, int length, int least) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const int start = at % starts, left = length - start;
  const Bases pattern = queries[at / starts] << (2 * start);
  const int2 range = __ldcg(&index.table[pattern >> (64 - 2 * kTableBases)]);
  // The longest match is the first suffix that is not below the pattern, or the one before.
  int low = range.x, high = range.y, above = 0, below = 0;
#pragma unroll 1
  while (low < high) {
    const int middle = (low + high) / 2;
    const Bases bases = BasesOf(index, middle);
    const int common = min(Common(pattern, bases), left);
    if (bases < pattern) low = middle + 1, below = common;
    else high = middle, above = common;
  }
  Record record = above >= below ? Record{low, low, low, above} : Record{low, low, low - 1, below};
  if (record.length >= least) {
    record.first = record.best, record.end = record.best + 1;
    while (record.first > 0 && index.common[record.first] >= least) --record.first;
    while (record.end < index.count && index.common[record.end] >= least) ++record.end;
  }
  records[at] = record;
}

/// A record a thread. alignments[i * count + at] is alignment i of a start, in no order; length 0 where there are
/// fewer.
__global__ void __launch_bounds__(kThreads)
    Align(Index index, const Record* records, Alignment* alignments, int count) {
  const int at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= count) return;
  const Record record = records[at];
  int written = 0;
  const auto write = [&](int suffix, int length) {
    alignments[written++ * count + at] = {__ldcg(&index.suffixes[suffix]), length};
  };
  if (record.first < record.end) write(record.best, record.length);
  int length = record.length;
#pragma unroll 1
  for (int i = record.best; i > record.first && written < kAlignments; --i)
    write(i - 1, length = min(length, int{index.common[i]}));
  length = record.length;
#pragma unroll 1
  for (int i = record.best + 1; i < record.end && written < kAlignments; ++i)
    write(i, length = min(length, int{index.common[i]}));
  while (written < kAlignments) alignments[written++ * count + at] = {0, 0};
}

/// A reference, of which a tenth repeats what came before with a few changes. kMost more bases follow, in which no
/// match begins.
std::vector<unsigned char> Reference(int count) {
  Random random(900);
  std::vector<unsigned char> bases;
  while (bases.size() < static_cast<std::size_t>(count) + kMost) {
    const std::size_t from = random.Next() % (bases.size() + 1), length = 50 + random.Next() % 200;
    const bool repeat = random.Next() % 10 == 0;
    for (std::size_t i = 0; i < length; ++i) {
      const unsigned char fresh = random.Next() % 4;
      bases.push_back(repeat && from + i < bases.size() && random.Next() % 64 != 0 ? bases[from + i] : fresh);
    }
  }
  bases.resize(count + kMost);
  return bases;
}

Bases Packed(const unsigned char* bases, int count) {
  Bases packed = 0;
  for (int i = 0; i < kMost; ++i) packed = packed << 2 | (i < count ? bases[i] : 0);
  return packed;
}

/// What Index has, on the host and on the device.
struct SortedSuffixes {
  explicit SortedSuffixes(const std::vector<unsigned char>& reference)
      : sorted(Sorted(reference)),
        text(Text(reference)),
        suffixes(Suffixes()),
        common(CommonPrefixes()),
        table(Table()) {}
  Index ForDevice() const { return {text, suffixes, common, table, static_cast<int>(sorted.size())}; }

 private:
  static std::vector<std::pair<Bases, int>> Sorted(const std::vector<unsigned char>& reference) {
    std::vector<std::pair<Bases, int>> sorted;
    for (std::size_t at = 0; at + kMost < reference.size(); ++at)
      sorted.emplace_back(Packed(&reference[at], kMost), static_cast<int>(at));
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  static std::vector<ulonglong2> Text(const std::vector<unsigned char>& reference) {
    std::vector<ulonglong2> text;
    const int end = static_cast<int>(reference.size());
    for (int at = 0; at < end; at += kMost) {
      const Bases first = Packed(&reference[at], std::min(kMost, end - at));
      if (at > 0) text.back().y = first;
      text.push_back({first, 0});
    }
    return text;
  }
  std::vector<int> Suffixes() const {
    std::vector<int> positions;
    for (const auto& [bases, position] : sorted) positions.push_back(position);
    return positions;
  }
  std::vector<unsigned char> CommonPrefixes() const {
    std::vector<unsigned char> common(sorted.size());
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      while (common[i] < kMost && (sorted[i].first ^ sorted[i - 1].first) >> (62 - 2 * common[i]) == 0) ++common[i];
    }
    return common;
  }
  std::vector<int2> Table() const {
    std::vector<int2> table(kTable, int2{0, 0});
    std::size_t suffix = 0;
    for (std::size_t prefix = 0; prefix < table.size(); ++prefix) {
      table[prefix].x = static_cast<int>(suffix);
      while (suffix < sorted.size() && sorted[suffix].first >> (64 - 2 * kTableBases) == prefix) ++suffix;
      table[prefix].y = static_cast<int>(suffix);
    }
    return table;
  }

  std::vector<std::pair<Bases, int>> sorted;
  Input<ulonglong2> text;
  Input<int> suffixes;
  Input<unsigned char> common;
  Input<int2> table;
};

/// Pieces of the reference in which two bases of a hundred have changed.
std::vector<unsigned char> Queries(const std::vector<unsigned char>& reference, int count, int length, int index) {
  Random random(901 + index);
  std::vector<unsigned char> queries;
  for (int query = 0; query < count; ++query) {
    const std::size_t from = random.Next() % (reference.size() - kMost);
    for (int i = 0; i < length; ++i) {
      const unsigned char fresh = random.Next() % 4;
      queries.push_back(random.Next() % 38 == 0 ? fresh : reference[from + i]);  // a quarter of them as it was
    }
  }
  return queries;
}

std::vector<Bases> PackedQueries(const std::vector<unsigned char>& queries, int length) {
  std::vector<Bases> packed;
  for (std::size_t at = 0; at < queries.size(); at += length) packed.push_back(Packed(&queries[at], length));
  return packed;
}

int Starts(const Options& options) { return options["length"] - options["least"] + 1; }

struct Set {
  Set(const Options& options, int index)
      : bases(Queries(Reference(options["reference"]), options["queries"], options["length"], index)),
        queries(PackedQueries(bases, options["length"])),
        records(queries.host.size() * Starts(options)),
        alignments(queries.host.size() * Starts(options) * kAlignments) {}
  const std::vector<unsigned char> bases;
  const Input<Bases> queries;
  const DeviceArray<Record> records;
  const DeviceArray<Alignment> alignments;
};

/// Where the reference has which `least` bases; compares base by base from there.
class Matches {
 public:
  Matches(const std::vector<unsigned char>& reference, int least) : reference_(reference), least_(least) {
    for (std::size_t at = 0; at + kMost < reference.size(); ++at)
      places_[Packed(&reference[at], least)].push_back(static_cast<int>(at));
  }

  /// All alignments of `left` bases: position, length.
  std::set<std::pair<int, int>> Of(const unsigned char* bases, int left) const {
    std::set<std::pair<int, int>> alignments;
    const auto places = places_.find(Packed(bases, least_));
    if (places == places_.end()) return alignments;
    for (int place : places->second) {
      int length = least_;
      while (length < left && bases[length] == reference_[place + length]) ++length;
      alignments.emplace(place, length);
    }
    return alignments;
  }

 private:
  const std::vector<unsigned char>& reference_;
  int least_;
  std::unordered_map<Bases, std::vector<int>> places_;
};

/// Checks what was found for a start. Where there are more than kAlignments, any of them may have been written.
void Check(int at, const Record& record, const Alignment* alignments, int count, std::set<std::pair<int, int>> want) {
  int longest = 0;
  for (const auto& [position, length] : want) longest = std::max(longest, length);
  Same("alignments of start", at, record.end - record.first, static_cast<int>(want.size()));
  if (!want.empty()) Same("longest match of start", at, record.length, longest);
  const int written = std::min(kAlignments, static_cast<int>(want.size()));
  for (int i = 0; i < kAlignments; ++i) {
    const auto [position, length] = alignments[i * count + at];
    if (i < written) Note(want.erase({position, length}) == 1, "alignment of start", at, position, 0);
    else Same("alignment of start that has none", at, position + length, 0);
  }
}

int main(int argc, char** argv) {
  const Options options("mum", argc, argv,
                        {{"reference", 16'384, 16'384, 1024, 4'194'304},
                         {"queries", 2176, 8192, 1, 65'536},
                         {"length", 25, 25, kTableBases, kMost},
                         {"least", 20, 20, kTableBases, kMost}});
  const int length = options["length"], least = options["least"], starts = Starts(options),
            count = options["queries"] * starts;
  if (starts < 1) Refuse("mum: --least=" + std::to_string(least) + " is more than --length=" + std::to_string(length));
  const std::vector<unsigned char> reference = Reference(options["reference"]);
  const SortedSuffixes sorted(reference);
  const Index index = sorted.ForDevice();
  Pipeline<Set> pipeline(options);
  pipeline.Stage("search", Search, Ctas(count, kThreads), kThreads, [=](const Set& set, auto launch) {
    launch(index, set.queries, set.records, count, starts, length, least);
  });
  pipeline.Stage("align", Align, Ctas(count, kThreads), kThreads,
                 [=](const Set& set, auto launch) { launch(index, set.records, set.alignments, count); });
  pipeline.Run();

  const Matches matches(reference, least);
  for (const Set& set : pipeline.sets()) {
    const std::vector<Record> records = pipeline.Result(set.records);
    const std::vector<Alignment> alignments = pipeline.Result(set.alignments);
    for (int at = 0; at < count; ++at) {
      const int start = at % starts;
      Check(at, records[at], &alignments[0], count,
            matches.Of(&set.bases[at / starts * length + start], length - start));
    }
  }
  return pipeline.Finish();
}

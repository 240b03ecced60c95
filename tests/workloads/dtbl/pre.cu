// PRE (Nadungodage et al.): products that are recommended by how alike products are. First, of each pair of items how alike their ratings
// by the same people are (cosine); then, of each user, the item not yet rated that is most like the rated ones. Nested work: all pairs of
// an item, and all items of a user. Sums are of whole numbers, so that the order in which they come does not matter.
#include <cmath>
#include <map>
#include <set>

#include "dtbl/program.h"

constexpr int kThreads = 64, kChildThreads = 128;
constexpr int kAlikeUnit = 1024;

/// Ratings by rows: of users (other is an item), or of items (other is a user); sorted by `other`.
struct Ratings {
  const int *first, *others, *values;
};

/// How alike items are, in whole units; 0 for those that nobody has rated both.
__device__ inline int Alike(const Ratings& of_items, const int* norms, int one, int other) {
  int i = of_items.first[one], j = of_items.first[other], product = 0;
  while (i < of_items.first[one + 1] && j < of_items.first[other + 1]) {
    const int difference = of_items.others[i] - of_items.others[j];
    if (difference == 0) product += of_items.values[i] * of_items.values[j];
    i += difference <= 0;
    j += difference >= 0;
  }
  if (product == 0) return 0;
  const float length = sqrtf(static_cast<float>(norms[one])) * sqrtf(static_cast<float>(norms[other]));
  return static_cast<int>(static_cast<float>(product * kAlikeUnit) / length);
}

__device__ inline void CompareItems(const Ratings& of_items, const int* norms, int* alike, int items, int one, int other) {
  alike[one * items + other] = alike[other * items + one] = Alike(of_items, norms, one, other);
}

__global__ void CompareRow(Ratings of_items, const int* norms, int* alike, int items, int one) {
  const int other = one + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (other < items) CompareItems(of_items, norms, alike, items, one, other);
}

__global__ void Norms(Ratings of_items, int items, int* norms) {
  const int item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= items) return;
  int sum = 0;
  for (int i = of_items.first[item]; i < of_items.first[item + 1]; ++i) sum += of_items.values[i] * of_items.values[i];
  norms[item] = sum;
}

template <Form kForm>
__global__ void CompareAll(Ratings of_items, const int* norms, int* alike, int items, Nesting nesting) {
  const int one = blockIdx.x * kThreads + threadIdx.x;
  if (one >= items) return;
  const int others = items - one - 1;
  if constexpr (kForm == Form::kCdp) {
    if (others >= nesting.threshold) {
      LaunchChild<CompareRow, kChildThreads>(nesting, others, of_items, norms, alike, items, one);
      return;
    }
  }
  for (int other = one + 1; other < items; ++other) CompareItems(of_items, norms, alike, items, one, other);
}

/// Points of an item for a user; in the low bits what makes the first one of equal items the best. Rated items have none.
__device__ inline unsigned long long Points(const Ratings& of_users, const int* alike, int items, int user, int item) {
  int points = 0;
  for (int i = of_users.first[user]; i < of_users.first[user + 1]; ++i) {
    if (of_users.others[i] == item) return 0;
    points += of_users.values[i] * alike[item * items + of_users.others[i]];
  }
  return static_cast<unsigned long long>(points) << 32 | static_cast<unsigned>(items - item);
}

__global__ void RateItems(Ratings of_users, const int* alike, int items, int user, unsigned long long* best) {
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item < items) atomicMax(&best[user], Points(of_users, alike, items, user, item));
}

template <Form kForm>
__global__ void Recommend(Ratings of_users, const int* alike, int items, int users, unsigned long long* best, Nesting nesting) {
  const int user = blockIdx.x * kThreads + threadIdx.x;
  if (user >= users) return;
  if constexpr (kForm == Form::kCdp) {
    if (items >= nesting.threshold) {
      LaunchChild<RateItems, kChildThreads>(nesting, items, of_users, alike, items, user, best);
      return;
    }
  }
  unsigned long long most = 0;
  for (int item = 0; item < items; ++item) {
    const unsigned long long points = Points(of_users, alike, items, user, item);
    most = points > most ? points : most;
  }
  best[user] = most;
}

struct Rows {
  std::vector<int> first = {0}, others, values;
};

struct DeviceRatings {
  explicit DeviceRatings(const Rows& rows) : first(rows.first), others(rows.others), values(rows.values) {}
  operator Ratings() const { return {first, others, values}; }
  const DeviceArray<int> first, others, values;
};

using Table = std::vector<std::map<int, int>>;

/// MovieLens 100K has 943 users, 1682 movies and 100,000 ratings from 1 to 5. Each user has rated 20 movies or more; how many more differs
/// by orders of magnitude (19 and a log-normal number, here with the median 40 and the deviation 1.2). A few movies are rated by many
/// (here, movie m with a weight of 1 / (m + 1) ^ 0.9).
Table MovieRatings(int users, int items, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> weights;
  double all = 0;
  for (int item = 0; item < items; ++item) weights.push_back(all += 1 / std::pow(item + 1, 0.9));
  Table of_users(users);
  for (auto& rated : of_users) {
    float normal = -6;
    for (int i = 0; i < 12; ++i) normal += random.Uniform(0, 1);
    const int count = std::min(items / 2, 19 + static_cast<int>(40 * items / 1682.0 * std::exp(1.2 * normal)));
    while (static_cast<int>(rated.size()) < count) {
      const double drawn = random.Uniform(0, 1) * all;
      const int item = static_cast<int>(std::lower_bound(weights.begin(), weights.end(), drawn) - weights.begin());
      rated.emplace(std::min(item, items - 1), 1 + static_cast<int>(random.Next() % 5));
    }
  }
  return of_users;
}

Rows RowsOf(const Table& table) {
  Rows rows;
  for (const auto& row : table) {
    for (const auto& [other, value] : row) rows.others.push_back(other), rows.values.push_back(value);
    rows.first.push_back(static_cast<int>(rows.others.size()));
  }
  return rows;
}

/// By users: what each one adds to the pairs of items that he has rated.
std::vector<int> AlikeOnHost(const Table& of_users, int items, Program& program) {
  std::vector<int> products(static_cast<std::size_t>(items) * items, 0), alike(products.size(), 0);
  for (const auto& rated : of_users) {
    for (const auto& [one, value] : rated) {
      for (const auto& [other, other_value] : rated) products[one * items + other] += value * other_value;
    }
  }
  for (int one = 0; one < items; ++one) {
    program.Nested(items - one - 1, kChildThreads);
    for (int other = 0; other < items; ++other) {
      const int product = products[one * items + other];
      if (one == other || product == 0) continue;
      const float length =
          std::sqrt(static_cast<float>(products[one * items + one])) * std::sqrt(static_cast<float>(products[other * items + other]));
      alike[one * items + other] = static_cast<int>(static_cast<float>(product * kAlikeUnit) / length);
    }
  }
  return alike;
}

int BestOnHost(const std::map<int, int>& rated, const std::vector<int>& alike, int items) {
  int best = 0, most = -1;
  for (int item = 0; item < items; ++item) {
    if (rated.count(item) > 0) continue;
    int points = 0;
    for (const auto& [other, value] : rated) points += value * alike[item * items + other];
    if (points > most) best = item, most = points;
  }
  return best;
}

int main(int argc, char** argv) {
  Program program("pre", "product recommendation, by items that are alike", argc, argv,
                  {{"movielens", 64, "people and their ratings of movies"}},
                  {{"users", 96, 943, 1, 8192}, {"items", 256, 1682, 44, 16384}});
  const int users = program["users"], items = program["items"];
  const Table of_users = MovieRatings(users, items, program.seed());
  Table of_items(items);
  for (int user = 0; user < users; ++user) {
    for (const auto& [item, value] : of_users[user]) of_items[item].emplace(user, value);
  }
  const DeviceRatings device_users(RowsOf(of_users)), device_items(RowsOf(of_items));
  const DeviceArray<int> norms(items), alike(std::vector<int>(static_cast<std::size_t>(items) * items, 0));
  const DeviceArray<unsigned long long> best(std::vector<unsigned long long>(users, 0));
  const Nesting nesting = program.Nest(std::max(users, items));

  Norms<<<Ctas(items, kThreads), kThreads>>>(device_items, items, norms);
  program.Launched();
  const auto compare = program.flat() ? CompareAll<Form::kFlat> : CompareAll<Form::kCdp>;
  compare<<<Ctas(items, kThreads), kThreads>>>(device_items, norms, alike, items, nesting);
  program.Launched();
  const auto recommend = program.flat() ? Recommend<Form::kFlat> : Recommend<Form::kCdp>;
  recommend<<<Ctas(users, kThreads), kThreads>>>(device_users, alike, items, users, best, nesting);
  program.Launched();

  const std::vector<int> want_alike = AlikeOnHost(of_users, items, program);
  std::vector<int> recommended, want;
  for (const unsigned long long packed : best.Read()) recommended.push_back(items - static_cast<int>(packed & 0xFFFFFFFFu));
  int ratings = 0;
  for (const auto& rated : of_users) {
    program.Nested(items, kChildThreads);
    ratings += static_cast<int>(rated.size());
    want.push_back(BestOnHost(rated, want_alike, items));
  }
  program.Compare("alike", alike.Read(), want_alike);
  program.Compare("recommended", recommended, want);
  program.Say(ratings, " ratings of ", items, " items by ", users, " users");
  return program.Finish();
}

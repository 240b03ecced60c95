// PRE (Nadungodage et al.): products that are recommended by how alike products are. First, of each pair of items how
// alike their ratings by the same people are (cosine); then, of each user, the item not yet rated that is most like the
// rated ones. Nested work: all pairs of an item, and all items of a user. Sums are of whole numbers, so that the order
// in which they come does not matter.
#include <cmath>
#include <map>
#include <numeric>

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

__device__ inline void CompareItems(const Ratings& of_items, const int* norms, int* alike, int items, int one,
                                    int other) {
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

/// What is expected of the users, and the best of it.
struct Advice {
  int* points;               ///< [user][item]; 0 for rated items
  unsigned long long* best;  ///< of each user: points, and below them what makes the first one of equal items the best
};

/// Points of an item for a user, as in `best`.
__device__ inline unsigned long long RateItem(const Ratings& of_users, const int* alike, int items, int user, int item,
                                              const Advice& advice) {
  int points = 0;
  for (int i = of_users.first[user]; i < of_users.first[user + 1]; ++i) {
    if (of_users.others[i] == item) return 0;
    points += of_users.values[i] * alike[item * items + of_users.others[i]];
  }
  advice.points[user * items + item] = points;
  return static_cast<unsigned long long>(points) << 32 | static_cast<unsigned>(items - item);
}

__global__ void RateItems(Ratings of_users, const int* alike, int items, int user, Advice advice) {
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item < items) atomicMax(&advice.best[user], RateItem(of_users, alike, items, user, item, advice));
}

template <Form kForm>
__global__ void Recommend(Ratings of_users, const int* alike, int items, int users, Advice advice, Nesting nesting) {
  const int user = blockIdx.x * kThreads + threadIdx.x;
  if (user >= users) return;
  if constexpr (kForm == Form::kCdp) {
    if (items >= nesting.threshold) {
      LaunchChild<RateItems, kChildThreads>(nesting, items, of_users, alike, items, user, advice);
      return;
    }
  }
  unsigned long long best = 0;
  for (int item = 0; item < items; ++item) {
    const unsigned long long points = RateItem(of_users, alike, items, user, item, advice);
    best = points > best ? points : best;
  }
  advice.best[user] = best;
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

/// MovieLens 100K has 943 users, 1682 movies and 100,000 ratings from 1 to 5. Each user has rated 20 movies or more;
/// how many more differs by orders of magnitude (19 and a log-normal number, here with the median 40 and the
/// deviation 1.2). A few movies are rated by many (here, movie m with a weight of 1 / (m + 1) ^ 0.9).
Table MovieRatings(int users, int items, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> weights;
  double all = 0;
  for (int rank = 1; rank <= items; ++rank) weights.push_back(all += 1 / std::pow(rank, 0.9));
  std::vector<int> number(items);
  std::iota(number.begin(), number.end(), 0);
  for (int i = items; i > 1; --i) std::swap(number[i - 1], number[random.Next() % i]);
  Table of_users(users);
  for (auto& rated : of_users) {
    float normal = -6;
    for (int i = 0; i < 12; ++i) normal += random.Uniform(0, 1);
    const int count = std::min(items / 2, 19 + static_cast<int>(40 * items / 1682.0 * std::exp(1.2 * normal)));
    while (static_cast<int>(rated.size()) < count) {
      const double drawn = random.Uniform(0, 1) * all;
      const int rank = static_cast<int>(std::lower_bound(weights.begin(), weights.end(), drawn) - weights.begin());
      rated.emplace(number[std::min(rank, items - 1)], 1 + static_cast<int>(random.Next() % 5));
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
      const float length = std::sqrt(static_cast<float>(products[one * items + one])) *
                           std::sqrt(static_cast<float>(products[other * items + other]));
      alike[one * items + other] = static_cast<int>(static_cast<float>(product * kAlikeUnit) / length);
    }
  }
  return alike;
}

/// Adds the points of all items for a user to `points`; the first one of the best.
int RateOnHost(const std::map<int, int>& rated, const std::vector<int>& alike, int items, std::vector<int>& points) {
  std::vector<int> of_items(items, 0);
  for (const auto& [other, value] : rated) {
    for (int item = 0; item < items; ++item) of_items[item] += value * alike[item * items + other];
  }
  for (const auto& [item, value] : rated) of_items[item] = 0;
  points.insert(points.end(), of_items.begin(), of_items.end());
  for (const auto& [item, value] : rated) of_items[item] = -1;
  return static_cast<int>(std::max_element(of_items.begin(), of_items.end()) - of_items.begin());
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
  const DeviceArray<int> points(std::vector<int>(static_cast<std::size_t>(users) * items, 0));
  const Nesting nesting = program.Nest(std::max(users, items));

  Norms<<<Ctas(items, kThreads), kThreads>>>(device_items, items, norms);
  program.Launched();
  const auto compare = program.flat() ? CompareAll<Form::kFlat> : CompareAll<Form::kCdp>;
  compare<<<Ctas(items, kThreads), kThreads>>>(device_items, norms, alike, items, nesting);
  program.Launched();
  const auto recommend = program.flat() ? Recommend<Form::kFlat> : Recommend<Form::kCdp>;
  recommend<<<Ctas(users, kThreads), kThreads>>>(device_users, alike, items, users, Advice{points, best}, nesting);
  program.Launched();

  const std::vector<int> want_alike = AlikeOnHost(of_users, items, program);
  std::vector<int> recommended, want, want_points;
  for (const unsigned long long packed : best.Read())
    recommended.push_back(items - static_cast<int>(packed & 0xFFFFFFFFu));
  int ratings = 0;
  for (const auto& rated : of_users) {
    program.Nested(items, kChildThreads);
    ratings += static_cast<int>(rated.size());
    want.push_back(RateOnHost(rated, want_alike, items, want_points));
  }
  program.Compare("alike", alike.Read(), want_alike);
  program.Compare("points", points.Read(), want_points);
  program.Compare("recommended", recommended, want);
  program.Say(ratings, " ratings of ", items, " items by ", users, " users");
  return program.Finish();
}

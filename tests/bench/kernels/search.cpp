#include <omp.h>

#include <string_view>

#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeSearch(const std::string& text, std::string_view word, std::vector<Ints>& places, int threads) {
  const std::size_t part = text.size() / threads + 1;
  places.resize(threads);
#pragma omp parallel num_threads(threads)
  {
    const std::size_t first = omp_get_thread_num() * part, last = first + part;
    const std::string_view within = std::string_view(text).substr(0, last + word.size() - 1);
    Ints& found = places[omp_get_thread_num()];
    found.clear();
    for (std::size_t at = within.find(word, first); at != std::string_view::npos; at = within.find(word, at + 1))
      found.push_back(static_cast<int>(at));
  }
}

/// Words of letters as frequent as in English, between blanks, with `word` here and there.
std::string MakeText(int n, std::string_view word) {
  constexpr std::string_view kLetters = "eeeeeettttaaaaooooiiiinnnssshhhrrrdddlluuccmmwwffggyyppbbvvkk        ";
  std::string text(n, ' ');
  for (int i = 0; i < n; ++i) text[i] = kLetters[Hash(i) % kLetters.size()];
  for (unsigned k = 0; static_cast<int>(k) < n / 4096; ++k)
    text.replace(Hash(k * 7 + 1) % (n - word.size()), word.size(), word);
  return text;
}

}  // namespace

GL_BENCHMARK(search) {
  const int n = Scaled(scale, 1 << 21, 4096);
  static constexpr std::string_view kWord = "the needle in it";
  auto text = std::make_shared<std::string>(MakeText(n, kWord));
  auto places = std::make_shared<std::vector<Ints>>();
  auto s = std::make_shared<State<int>>();
  return {"search",
          std::to_string(n) + " letters, " + std::to_string(kWord.size()) + " in a word",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(text->data(), text->size()), d.Upload(kWord.data(), kWord.size()), d.Allocate(n * 4),
                         d.Allocate(4)};
          },
          [=](Device& d) {
            d.Clear(s->memory[3], 4);
            d.Launch("Search", {Blocks(n, 256)}, {256},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, Pointer{s->memory[3]}, n,
                      static_cast<int>(kWord.size())});
          },
          [=](Device& d) {
            int count = 0;
            d.Read(&count, s->memory[3], 4);
            auto found = Download<int>(d, s->memory[2], std::clamp(count, 0, n));
            std::sort(found.begin(), found.end());
            return found;
          },
          [=](int threads) { NativeSearch(*text, kWord, *places, threads); },
          [=] {
            std::vector<double> all;
            for (const Ints& part : *places) all.insert(all.end(), part.begin(), part.end());
            return all;
          }};
}

}  // namespace bench

#include "rewriter/support/demangle.h"

#include <time.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

namespace gridloom {
namespace {

/// A function of one parameter, whose type is T as the compiler mangles it.
template <typename T>
std::string NameWith() {
  return std::string("_Z4sort") + typeid(T).name();
}

template <int kNumber>
struct Tile {
  template <int kOther, typename T>
  struct Iterator {};
};

template <typename... Parts>
struct Policy {};

/// As thrust makes them: what was before comes back in other places, so that most of the name are references.
template <int kLevels>
struct Deep {
  using Type =
      Policy<typename Deep<kLevels - 1>::Type, std::vector<typename Tile<kLevels>::template Iterator<kLevels, float>>,
             std::tuple<int, Tile<kLevels>, std::pair<long, Tile<kLevels>>>>;
};
template <>
struct Deep<0> {
  using Type = std::map<std::string, std::vector<int>>;
};

/// The base of Tiles of one number after the other, which nothing repeats.
template <std::size_t... kNumbers>
Policy<Tile<1000 + static_cast<int>(kNumbers)>...> ManyTiles(std::index_sequence<kNumbers...>);

std::string Times(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// The reference to what a name's `number`th component is.
std::string Reference(std::size_t number) {
  if (number == 0) return "S_";
  std::string digits;
  for (std::size_t rest = number - 1;; rest /= 36) {
    digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 36]);
    if (rest < 36) break;
  }
  return "S" + digits + "_";
}

/// Each of `levels` parameters names the one before `width` times.
std::string Pointers(std::size_t levels, std::size_t width) {
  std::string name = "_Z1f1A";
  for (std::size_t i = 0; i < levels; ++i) name += "PFv" + Times(width, Reference(2 * i)) + "E";
  return name;
}
std::string Templates(std::size_t levels, std::size_t width) {
  std::string name = "_Z1f1A1BI" + Times(width, "S_") + "E";
  for (std::size_t i = 0; i < levels; ++i) name += "S0_I" + Times(width, Reference(i + 2)) + "E";
  return name;
}
std::string Nested(std::size_t levels, std::size_t width) {
  std::string name = "_Z1f1AN1N1BI" + Times(width, "S_") + "EE";
  for (std::size_t i = 0; i < levels; ++i) name += "NS1_I" + Times(width, Reference(i + 3)) + "EE";
  return name;
}

double Seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST_CASE("DemangledName_IsAsTheSourceSpellsIt") {
  CHECK(DemangledName("vectoradd") == "vectoradd");
  CHECK(DemangledName("Mix") == "Mix");
  CHECK(DemangledName("_Z") == "_Z");
  CHECK(DemangledName("_Z3addPfi") == "add(float*, int)");
  CHECK(DemangledName("__nv_static_29__89ba12d2_9_second_cu_counter__Z9same_namePi") == "static same_name(int*)");
  CHECK(DemangledName("__nv_static_29__Z") == "__nv_static_29__Z");
  CHECK(DemangledName("_ZN12_GLOBAL__N_15scaleILi3EfEEvPT0_RA4_i") ==
        "void (anonymous namespace)::scale<3, float>(float*, int (&) [4])");
  CHECK(DemangledName("_Z3runIZ4mainEUlvE_Z4mainEUliE0_EvT_T0_") ==
        "void run<main::{lambda()#1}, main::{lambda(int)#2}>(main::{lambda()#1}, main::{lambda(int)#2})");
  CHECK(DemangledName("_Z3runIJifEEvDpPT_") == "void run<int, float>(int*, float*)");
  CHECK(DemangledName("_Z3runIJEEvDpA2_T_") == "void run<>()");
  CHECK(DemangledName("_Z3\x1b[mv") == "\\x1b[m()");
}

TEST_CASE("DemangledName_OfAnAddedKernelSaysOfWhichAndWhat") {
  CHECK(DemangledName("_Z4HeatPKfS0_Pf__profile") == "Heat(float const*, float const*, float*) (profile)");
  CHECK(DemangledName("__nv_static_29__89ba12d2_9_a_cu__Z3addPi__profile") == "static add(int*) (profile)");
  CHECK(DemangledName("add__profile") == "add__profile");
  CHECK(DemangledName("_Z3addPi__") == "_Z3addPi__");
}

TEST_CASE("DemangledName_OfLocalNamesDropsTheirNumbers") {
  CHECK(DemangledName("_Z3runIZ4mainE1A_0EvT_") == DemangledName("_Z3runIZ4mainE1AEvT_"));
  CHECK(DemangledName("_Z3runIZ4mainE1A__12_EvT_") == "void run<main::A>(main::A)");
}

TEST_CASE("DemangledName_TakesParametersOfTemplatesForThoseOfTheirOwnFunction") {
  // S3_ is T_, which is B where it comes first, in make<B>(T_), and A where the reference stands.
  CHECK(DemangledName("_Z3runI1AZ4makeI1BEvT_EUlvE_EvS3_") == "void run<A, void make<B>(B)::{lambda()#1}>(A)");
  CHECK(DemangledName("_Z3runI1AZ4makeI1BEvPT_EUlvE_EvS4_") == "void run<A, void make<B>(B*)::{lambda()#1}>(A*)");
}

TEST_CASE("DemangledName_OfLongNamesOfTheCompilerIsWhole") {
  const std::string deep = NameWith<Deep<40>::Type>();
  CHECK(deep.size() > 3000);
  const std::string text = DemangledName(deep);
  CHECK(text.starts_with("sort(gridloom::(anonymous namespace)::Policy<"));
  CHECK(text.find("std::vector<gridloom::(anonymous namespace)::Tile<40>::Iterator<40, float>") != std::string::npos);
  CHECK(text.size() > 2 * deep.size());

  const std::string wide = NameWith<decltype(ManyTiles(std::make_index_sequence<400>()))>();
  CHECK(wide.size() > 5000);
  CHECK(DemangledName(wide).find("Tile<1399>>)") != std::string::npos);
}

TEST_CASE("DemangledName_LeavesNamesAloneThatStandForFarMoreText") {
  for (const auto make : {Pointers, Templates, Nested}) {
    for (const std::size_t width : {2, 3}) {
      CHECK(DemangledName(make(3, width)).starts_with("f(A, "));
      for (const std::size_t levels : {20, 60, 300}) {
        const std::string name = make(levels, width);
        const double begin = Seconds();
        CHECK(DemangledName(name) == name);
        CHECK(Seconds() - begin < 0.1);
      }
    }
  }
}

TEST_CASE("DemangledName_CountsWhatExpansionsRepeat") {
  CHECK(DemangledName("_Z1fIJ" + Times(100, "i") + "EEvDp1BIT_E").size() > 500);
  // 200 times 1,000 of "B<int>, ".
  const std::string many = "_Z1fIJ" + Times(1000, "i") + "EEv" + Times(200, "Dp1BIT_E");
  CHECK(DemangledName(many) == many);
}

#ifndef __SANITIZE_ADDRESS__  // with which each frame takes several KiB
TEST_CASE("DemangledName_TakesLittleStackForDeepNames") {
  for (const char* part : {"P", "R", "K", "A1_", "1AI", "u1aI", "N1A", "Z1f", "FPi", "XadL_Z", "U1a", "M1A", "DpT",
                           "Tp", "Tt", "XnwX", "DTng"}) {
    for (const std::size_t times : {100, 1000, 2000, 100'000}) {
      const std::string name = "_Z1f" + Times(times, part);
      for (const std::string& whole : {name + "i", "_Z1fI" + name.substr(4), "_ZN1fUl" + name.substr(4) + "iE_Ev"}) {
        if (times >= 1000) CHECK(DemangledName(whole) == whole);
        else CHECK_FALSE(DemangledName(whole).empty());
      }
    }
  }
}
#endif

TEST_CASE("DemangledName_DoesNotFollowNamesIntoThemselves") {
  for (const char* name : {"_ZN1AcvT_IiEEv", "_ZN1AcvPT_IiEEv", "_ZN1AcvRT_IS1_EEv", "_ZN1AcvT_IT_EEv"})
    CHECK(DemangledName(name) == name);
}

}  // namespace
}  // namespace gridloom

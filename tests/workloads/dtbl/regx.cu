// REGX (Wang et al., Gregex): which of many regular expressions are found where in packets. A thread has a packet and
// goes through its bytes. At each byte with which some expressions can begin, all of those are tried from there on,
// each by its own automaton: the nested work, in which a child has a thread for each expression. In random strings of
// few letters nearly each byte is such a beginning.
#include <array>
#include <map>
#include <set>

#include "dtbl/program.h"

constexpr int kThreads = 64, kChildThreads = 32;
constexpr int kStates = 32;                         ///< of an automaton; 0 is the one from which nothing is found
constexpr unsigned char kStart = 1, kFound = 0x80;  ///< kFound is set in what leads to an end

struct Automata {
  const unsigned char* next;  ///< [expression][state][byte]
  const int *first,
      *lists;  ///< the expressions that can begin with byte b are lists[first[b]] to lists[first[b + 1] - 1]
  int expressions;
};

/// A find is 65536 * where it begins + its length; the earliest one is kept, and the shortest from there.
struct Packets {
  const unsigned char* bytes;
  const int* begins;  ///< packet p is bytes[begins[p]] to bytes[begins[p + 1] - 1]
  unsigned* finds;    ///< [packet][expression]
};

__device__ inline void Try(const Automata& automata, const Packets& packets, int expression, int packet, int from,
                           int length) {
  const unsigned char* const bytes = packets.bytes + packets.begins[packet];
  const unsigned char* const next = automata.next + expression * kStates * 256;
  unsigned char state = kStart;
  for (int at = from; at < length && state != 0; ++at) {
    state = next[state * 256 + bytes[at]];
    if ((state & kFound) == 0) continue;
    atomicMin(&packets.finds[packet * automata.expressions + expression], from << 16 | (at + 1 - from));
    return;
  }
}

__global__ void TryAll(Automata automata, Packets packets, const int* list, int count, int packet, int from,
                       int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) Try(automata, packets, list[i], packet, from, length);
}

template <Form kForm>
__global__ void Scan(Automata automata, Packets packets, int count, Nesting nesting) {
  const int packet = blockIdx.x * kThreads + threadIdx.x;
  if (packet >= count) return;
  const int begin = packets.begins[packet], length = packets.begins[packet + 1] - begin;
  for (int from = 0; from < length; ++from) {
    const int byte = packets.bytes[begin + from];
    const int* const list = automata.lists + automata.first[byte];
    const int tries = automata.first[byte + 1] - automata.first[byte];
    if constexpr (kForm == Form::kCdp) {
      if (tries >= nesting.threshold) {
        LaunchChild<TryAll, kChildThreads>(nesting, tries, automata, packets, list, tries, packet, from, length);
        continue;
      }
    }
    for (int i = 0; i < tries; ++i) Try(automata, packets, list[i], packet, from, length);
  }
}

/// A set of bytes, once or again and again (+), perhaps not at all (?), or both (*).
struct Item {
  std::array<bool, 256> bytes = {};
  bool optional = false, again = false;
};
using Expression = std::vector<Item>;

/// Letters, sets like [a-z], any byte (.), and +, ? and * behind them.
Expression Parse(const std::string& text) {
  Expression items;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' || text[i] == '*' || text[i] == '?') {
      items.back().again = text[i] != '?';
      items.back().optional = text[i] != '+';
      continue;
    }
    Item item;
    if (text[i] == '.') item.bytes.fill(true);
    else if (text[i] != '[') item.bytes[static_cast<unsigned char>(text[i])] = true;
    else {
      for (int byte = text[i + 1]; byte <= text[i + 3]; ++byte) item.bytes[byte] = true;
      i += 4;
    }
    items.push_back(item);
  }
  return items;
}

/// Items that can come next where `item` is the next one: those behind it, too, while they are optional. The last
/// number is the end.
void AddPlace(const Expression& items, int item, std::set<int>& places) {
  places.insert(item);
  if (item < static_cast<int>(items.size()) && items[item].optional) AddPlace(items, item + 1, places);
}

/// The automaton whose states are sets of places. Behind a find nothing is looked for.
std::vector<unsigned char> Automaton(const Expression& items) {
  std::vector<unsigned char> next(kStates * 256, 0);
  std::map<std::set<int>, int> states;
  std::vector<std::set<int>> list = {{}, {}};
  AddPlace(items, 0, list[kStart]);
  states[list[kStart]] = kStart;
  const int end = static_cast<int>(items.size());
  for (std::size_t state = kStart; state < list.size(); ++state) {
    for (int byte = 0; byte < 256; ++byte) {
      std::set<int> places;
      for (const int place : list[state]) {
        if (place == end || !items[place].bytes[byte]) continue;
        if (items[place].again) AddPlace(items, place, places);
        AddPlace(items, place + 1, places);
      }
      if (places.empty()) continue;
      const bool found = places.count(end) > 0;
      const auto [known, added] = states.emplace(places, static_cast<int>(list.size()));
      if (added) list.push_back(places);
      if (list.size() > kStates) Refuse("regx: an expression has too many states");
      next[state * 256 + byte] = static_cast<unsigned char>(known->second | (found ? kFound : 0));
    }
  }
  return next;
}

/// Something that an expression finds.
std::string Instance(const Expression& items, Random& random) {
  std::string text;
  for (const Item& item : items) {
    const int times = item.optional ? static_cast<int>(random.Next() % 2)
                                    : 1 + static_cast<int>(item.again && random.Next() % 2 == 0);
    for (int i = 0; i < times; ++i) {
      unsigned char byte = 'x';
      while (!item.bytes[byte]) byte = static_cast<unsigned char>(random.Next());
      text += static_cast<char>(byte);
    }
  }
  return text;
}

std::string RandomWord(Random& random, int letters, int least, int most) {
  std::string word;
  for (int left = least + static_cast<int>(random.Next() % (most - least + 1)); left > 0; --left)
    word += static_cast<char>('a' + random.Next() % letters);
  return word;
}

const char* const kCommands[] = {"GET /", "POST /", "USER ", "RETR ", "MAIL FROM:<", "login: "};

/// Expressions like those of an intrusion detector: a command of HTTP, FTP, SMTP or telnet, and words that tell an
/// attack.
std::vector<std::string> PacketExpressions(int count, Random& random) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    const std::string word = RandomWord(random, 26, 1, 2);
    const char* const ends[] = {"[a-z]+[0-9]", "[a-z]*[.-/][a-z]?x", ".?[0-9]+ ", "[a-z]?[a-z]?[0-9]*/"};
    texts.push_back(kCommands[i % std::size(kCommands)] + word + ends[random.Next() % std::size(ends)]);
  }
  return texts;
}

/// Expressions over the first letters of the alphabet.
std::vector<std::string> StringExpressions(int count, int letters, Random& random) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text = RandomWord(random, letters, 1, 2);
    for (int part = 0; part < 2; ++part) {
      const char* const repeats[] = {"+", "?", "*", ""};
      text += RandomWord(random, letters, 1, 1) + repeats[random.Next() % std::size(repeats)];
    }
    texts.push_back(text + RandomWord(random, letters, 1, 2));
  }
  return texts;
}

/// The traces of 1998 and 1999 (MIT Lincoln Laboratory) are mail, web, telnet and file transfer: many short packets,
/// and some long ones, nearly all of them printable. Here: words, numbers, and commands, with which an expression can
/// begin, but mostly does not go on; and now and then something that one finds.
std::string Packet(int length, const std::vector<Expression>& expressions, Random& random) {
  std::string packet;
  while (static_cast<int>(packet.size()) < length) {
    const unsigned kind = random.Next() % 16;
    if (kind == 0)
      packet += kCommands[random.Next() % std::size(kCommands)] + RandomWord(random, 26, 1, 6) +
                std::to_string(random.Next() % 100);
    else if (random.Next() % 64 == 0) packet += Instance(expressions[random.Next() % expressions.size()], random);
    else packet += kind < 3 ? std::to_string(random.Next() % 10000) : RandomWord(random, 26, 2, 9);
    packet += kind % 5 == 0 ? "/" : " ";
  }
  return packet.substr(0, length);
}

/// Where an item leaves off that begins at one of some places.
std::set<int> PlacesBehind(const Item& item, const std::string& text, const std::set<int>& from) {
  std::set<int> places;
  for (int at : from) {
    if (item.optional) places.insert(at);
    for (bool first = true; at < static_cast<int>(text.size()) && (first || item.again) &&
                            item.bytes[static_cast<unsigned char>(text[at])];
         first = false) {
      places.insert(++at);
    }
  }
  return places;
}

/// Item by item, without an automaton.
unsigned FindOnHost(const Expression& items, const std::string& text) {
  for (int from = 0; from < static_cast<int>(text.size()); ++from) {
    std::set<int> places = {from};
    for (std::size_t i = 0; i < items.size() && !places.empty(); ++i) places = PlacesBehind(items[i], text, places);
    if (!places.empty()) return static_cast<unsigned>(from << 16 | (*places.begin() - from));
  }
  return ~0u;
}

int main(int argc, char** argv) {
  Program program(
      "regx", "regular expressions in packets", argc, argv,
      {{"darpa", 8, "packets of mail, web, telnet and file transfer"}, {"strings", 8, "random strings of few letters"}},
      {{"packets", 192, 4096, 1, 1 << 16},
       {"expressions", 96, 256, 1, 4096},
       {"longest", 160, 1500, 41, 16384},
       {"letters", 5, 5, 1, 26}});
  const int count = program["packets"], expression_count = program["expressions"], longest = program["longest"];
  const bool strings = program.input() == "strings";
  Random random(program.seed());
  std::vector<Expression> expressions;
  std::vector<unsigned char> next;
  for (const std::string& text : strings ? StringExpressions(expression_count, program["letters"], random)
                                         : PacketExpressions(expression_count, random)) {
    expressions.push_back(Parse(text));
    const std::vector<unsigned char> automaton = Automaton(expressions.back());
    next.insert(next.end(), automaton.begin(), automaton.end());
  }
  std::vector<int> first = {0}, lists, begins = {0};
  for (int byte = 0; byte < 256; ++byte) {
    for (int i = 0; i < expression_count; ++i) {
      if (next[(i * kStates + kStart) * 256 + byte] != 0) lists.push_back(i);
    }
    first.push_back(static_cast<int>(lists.size()));
  }
  std::vector<std::string> texts;
  std::vector<unsigned char> bytes;
  for (int i = 0; i < count; ++i) {
    // Two of three are short: acknowledgements, keys pressed.
    const int length = i % 3 < 2 ? 40 + static_cast<int>(random.Next() % 60)
                                 : longest / 3 + static_cast<int>(random.Next() % (longest - longest / 3 + 1));
    texts.push_back(strings ? RandomWord(random, program["letters"], longest / 4, longest / 2)
                            : Packet(std::min(length, longest), expressions, random));
    bytes.insert(bytes.end(), texts.back().begin(), texts.back().end());
    begins.push_back(static_cast<int>(bytes.size()));
  }

  const DeviceArray<unsigned char> device_next(next), device_bytes(bytes);
  const DeviceArray<int> device_first(first), device_lists(lists), device_begins(begins);
  const DeviceArray<unsigned> finds(std::vector<unsigned>(static_cast<std::size_t>(count) * expression_count, ~0u));
  const Automata automata = {device_next, device_first, device_lists, expression_count};
  const Packets packets = {device_bytes, device_begins, finds};
  const Nesting nesting = program.Nest(bytes.size());
  const auto scan = program.flat() ? Scan<Form::kFlat> : Scan<Form::kCdp>;
  scan<<<Ctas(count, kThreads), kThreads>>>(automata, packets, count, nesting);
  program.Launched();

  std::vector<unsigned> want;
  int found = 0;
  for (const std::string& text : texts) {
    for (const unsigned char byte : text) {
      const auto begins_with = [byte](const Expression& items) {
        for (std::size_t i = 0; i < items.size(); ++i) {
          if (items[i].bytes[byte]) return true;
          if (!items[i].optional) return false;
        }
        return false;
      };
      program.Nested(static_cast<int>(std::count_if(expressions.begin(), expressions.end(), begins_with)),
                     kChildThreads);
    }
    for (const Expression& items : expressions) {
      want.push_back(FindOnHost(items, text));
      found += want.back() != ~0u;
    }
  }
  program.Compare("find", finds.Read(), want);
  program.Say(bytes.size(), " bytes, ", found, " finds of ", want.size(), " that there could be");
  return program.Finish();
}

// Prints the fingerprints of yanyiwu/simhash: the simhash of the 5 top keywords of cppjieba.
//
// Input, for each text: its length in bytes, a line feed, the bytes. Output, a line for each text, with tabs between the fields: the
// fingerprint, and the keywords with their weights. The argument is cppjieba's dictionary folder.

#include <cstdint>
#include <cstdio>

#include "cppjieba/Jieba.hpp"

static uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

// hashlittle2 of Bob Jenkins's lookup3.c with seeds 0 and 0: c in the high 32 bits, b in the low 32 bits.
static uint64_t lookup3(const std::string& key) {
  uint32_t state[3];
  state[0] = state[1] = state[2] = 0xdeadbeef + uint32_t(key.size());
  uint32_t &a = state[0], &b = state[1], &c = state[2];
  for (size_t i = 0; i < key.size(); ++i) {
    if (i > 0 && i % 12 == 0) {
      a -= c; a ^= rotate(c, 4); c += b;
      b -= a; b ^= rotate(a, 6); a += c;
      c -= b; c ^= rotate(b, 8); b += a;
      a -= c; a ^= rotate(c, 16); c += b;
      b -= a; b ^= rotate(a, 19); a += c;
      c -= b; c ^= rotate(b, 4); b += a;
    }
    state[i % 12 / 4] += uint32_t(uint8_t(key[i])) << 8 * (i % 4);
  }
  if (!key.empty()) {
    c ^= b; c -= rotate(b, 14);
    a ^= c; a -= rotate(c, 11);
    b ^= a; b -= rotate(a, 25);
    c ^= b; c -= rotate(b, 16);
    a ^= c; a -= rotate(c, 4);
    b ^= a; b -= rotate(a, 14);
    c ^= b; c -= rotate(b, 24);
  }
  return uint64_t(c) << 32 | b;
}

int main(int, char** arguments) {
  const std::string folder = arguments[1];
  const cppjieba::Jieba jieba(folder + "/jieba.dict.utf8", folder + "/hmm_model.utf8", folder + "/user.dict.utf8",
                              folder + "/idf.utf8", folder + "/stop_words.utf8");
  size_t length;
  while (scanf("%zu", &length) == 1) {
    getchar();
    std::string text(length, '\0');
    if (fread(&text[0], 1, length, stdin) != length) return 1;
    std::vector<std::pair<std::string, double> > keywords;
    jieba.extractor.Extract(text, keywords, 5);
    double sums[64] = {};
    for (size_t i = 0; i < keywords.size(); ++i) {
      const uint64_t hash = lookup3(keywords[i].first);
      for (int bit = 0; bit < 64; ++bit) sums[bit] += (hash >> bit & 1 ? 1 : -1) * keywords[i].second;
    }
    uint64_t fingerprint = 0;
    for (int bit = 0; bit < 64; ++bit) fingerprint |= uint64_t(sums[bit] > 0.0) << bit;
    printf("%016lx", static_cast<unsigned long>(fingerprint));
    for (size_t i = 0; i < keywords.size(); ++i) printf("\t%s\t%.9f", keywords[i].first.c_str(), keywords[i].second);
    printf("\n");
    fflush(stdout);
  }
}

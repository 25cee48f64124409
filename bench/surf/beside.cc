/*
 * beside.cc
 *		This range filter and the authors' on the same keys, taking turns in
 *		one process.
 *
 *	beside [FILE | int8] [KEYS] [VARIANT...]
 *
 * Keys and questions are those of surf.c.  Each figure is the least of some
 * rounds, in which both are asked one after the other, in processor time.
 * `lost` counts false negatives.  make beside REF=... needs the authors' code,
 * https://github.com/efficient/SuRF.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "surf.hpp"

extern "C"
{
#include "algo/fst.h"
}

using std::string;
using std::vector;

static int	rounds = 7;
static uint64_t seed = UINT64_C(88172645463325252);

static uint64_t
next_random()
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double
now()
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static void *
resize(void *old, size_t size)
{
	return realloc(old, size);
}

struct Figures
{
	double		build = 1e18;
	double		point = 1e18;
	double		range = 1e18;
	double		bits = 0;
	size_t		point_fp = 0;
	size_t		range_fp = 0;
	size_t		lost = 0;

	void print(const char *who, const char *variant, size_t n, size_t empty) const
	{
		printf("| %s | %s | %.2f | %.2f %% | %.2f %% | %.0f | %.0f | %.0f | %zu |\n",
			   who, variant, bits, 100.0 * point_fp / n, 100.0 * range_fp / empty,
			   point, range, build, lost);
	}
};

static const uint8_t *
bytes(const string &s)
{
	return (const uint8_t *) s.data();
}

static void
report(const char *variant, unsigned nbits, bool ints,
	   const vector<string> &stored, const vector<string> &asked)
{
	size_t		n = asked.size();
	size_t		nempty = 0;
	vector<string> low = asked;
	vector<string> high = asked;
	vector<char> empty(n);
	Figures		ours;
	Figures		theirs;
	HybFst		fst;
	void	   *image = NULL;
	surf::SuRF *other = NULL;

	for (int i = 0; i < 2; i++)
	{
		HybFstBuilder *b = hyb_fst_builder_create(resize, nbits);
		double		t = now();
		size_t		size;

		for (auto &k : stored)
			hyb_fst_builder_add(b, bytes(k), (uint32_t) k.size());
		size = hyb_fst_builder_finish(b);
		image = resize(image, size);
		hyb_fst_builder_write(b, image);
		ours.build = std::min(ours.build, (now() - t) / (double) stored.size());
		ours.bits = (double) size * 8 / (double) stored.size();
		if (!hyb_fst_open(&fst, image, size))
			abort();
	}
	{
		double		t = now();

		other = new surf::SuRF(stored, true, surf::kSparseDenseRatio,
							   nbits == 0 ? surf::kNone : surf::kReal, 0, nbits);
		theirs.build = (now() - t) / (double) stored.size();
		theirs.bits = (double) other->serializedSize() * 8 / (double) stored.size();
	}

	for (size_t i = 0; i < n; i++)
	{
		if (ints)
		{
			uint64_t	v = surf::stringToUint64(asked[i]);

			low[i] = surf::uint64ToString(v + (UINT64_C(1) << 40));
			high[i] = surf::uint64ToString(v + (UINT64_C(1) << 42));
		}
		else
			high[i].back()++;
		auto		it = std::lower_bound(stored.begin(), stored.end(), low[i]);

		empty[i] = it == stored.end() || *it > high[i];
		nempty += empty[i];
	}

	for (int r = 0; r < rounds; r++)
	{
		double		t;

		ours.point_fp = ours.range_fp = ours.lost = 0;
		theirs.point_fp = theirs.range_fp = theirs.lost = 0;
		t = now();
		for (auto &k : asked)
			ours.point_fp += hyb_fst_lookup(&fst, bytes(k), (uint32_t) k.size()) == HYB_ANSWER_MAYBE;
		ours.point = std::min(ours.point, (now() - t) / (double) n);
		t = now();
		for (auto &k : asked)
			theirs.point_fp += other->lookupKey(k);
		theirs.point = std::min(theirs.point, (now() - t) / (double) n);
		t = now();
		for (size_t i = 0; i < n; i++)
		{
			HybFstCut		from = {bytes(low[i]), (uint32_t) low[i].size(), HYB_CUT_BEFORE};
			HybFstCut		to = {bytes(high[i]), (uint32_t) high[i].size(), HYB_CUT_SELF};
			bool		yes = hyb_fst_range(&fst, &from, &to) == HYB_ANSWER_MAYBE;

			ours.range_fp += yes && empty[i];
			ours.lost += !yes && !empty[i];
		}
		ours.range = std::min(ours.range, (now() - t) / (double) n);
		t = now();
		for (size_t i = 0; i < n; i++)
		{
			bool		yes = other->lookupRange(low[i], true, high[i], true);

			theirs.range_fp += yes && empty[i];
			theirs.lost += !yes && !empty[i];
		}
		theirs.range = std::min(theirs.range, (now() - t) / (double) n);
	}
	for (auto &k : stored)
	{
		ours.lost += hyb_fst_lookup(&fst, bytes(k), (uint32_t) k.size()) != HYB_ANSWER_MAYBE;
		theirs.lost += !other->lookupKey(k);
	}
	ours.print("this", variant, n, nempty);
	theirs.print("authors'", variant, n, nempty);
	fflush(stdout);
	other->destroy();
	delete other;
	free(image);
}

int
main(int argc, char **argv)
{
	string		source = argc > 1 ? argv[1] : "int8";
	size_t		wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	bool		ints = source == "int8";
	vector<string> keys;

	if (getenv("ROUNDS") != NULL)
		rounds = atoi(getenv("ROUNDS"));
	if (ints)
		while (keys.size() < wanted)
			keys.push_back(surf::uint64ToString(next_random()));
	else
	{
		std::ifstream f(source);
		string		line;

		while (keys.size() < wanted && std::getline(f, line))
			if (!line.empty())
				keys.push_back(line);
	}
	if (keys.size() < 2)
		return 1;
	for (size_t i = keys.size() - 1; i > 0; i--)
		std::swap(keys[i], keys[next_random() % (i + 1)]);

	size_t		half = keys.size() / 2;
	vector<string> stored(keys.begin(), keys.begin() + (long) half);
	vector<string> asked(keys.begin() + (long) half, keys.end());

	std::sort(stored.begin(), stored.end());
	printf("%s: %zu keys stored, %zu asked\n", source.c_str(), stored.size(), asked.size());
	printf("| code | variant | bits/key | point FPR | range FPR | point ns | range ns | build ns/key | lost |\n");
	printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
	static const struct
	{
		const char *name;
		unsigned	bits;
	}			variants[] = {
		{"Base", 0},
		{"Real4", 4},
		{"Real8", 8},
	};
	for (auto &v : variants)
	{
		bool		wanted_variant = argc <= 3;

		for (int i = 3; i < argc; i++)
			wanted_variant |= strcmp(argv[i], v.name) == 0;
		if (wanted_variant)
			report(v.name, v.bits, ints, stored, asked);
	}
	return 0;
}

/*
 * The C++ workload: words FILE ROUNDS counts the words of a file in a hash
 * table and in a tree, sorts them by a string that each is made into, and
 * evaluates an expression of objects with virtual functions.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct node {
	virtual ~node() = default;
	virtual long value(long x) const = 0;
};
struct leaf : node {
	long n;
	explicit leaf(long n) : n(n) {}
	long value(long x) const override { return x ^ n; }
};
struct sum : node {
	std::unique_ptr<node> a, b;
	sum(node *a, node *b) : a(a), b(b) {}
	long value(long x) const override { return a->value(x) + b->value(x + 1); }
};

static node *tree(int depth)
{
	if (!depth)
		return new leaf(rand());
	return new sum(tree(depth - 1), tree(depth - 1));
}

static std::vector<std::string> split(const std::string &text)
{
	std::vector<std::string> words;
	std::string word;
	for (char c : text)
		if (c >= 'a' && c <= 'z')
			word += c;
		else if (!word.empty())
			words.push_back(std::move(word)), word.clear();
	return words;
}

static std::size_t count(const std::vector<std::string> &words)
{
	std::unordered_map<std::string, long> hashed;
	std::map<std::string, long> sorted;
	for (const auto &w : words)
		hashed[w]++;
	for (const auto &h : hashed)
		sorted[h.first.substr(0, 4)] += h.second;
	return hashed.size() + sorted.size();
}

static std::string backwards(const std::string &w)
{
	return std::string(w.rbegin(), w.rend());
}

static void sort_backwards(std::vector<std::string> &words)
{
	std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) {
		return backwards(a) < backwards(b);
	});
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	std::ifstream in(argv[1]);
	const std::string text{std::istreambuf_iterator<char>(in), {}};
	std::unique_ptr<node> expression(tree(14));
	long all = 0;
	for (int i = atoi(argv[2]); i > 0; i--) {
		auto words = split(text);
		all += (long)count(words);
		words.resize(words.size() / 8);
		sort_backwards(words);
		for (int j = 0; j < 100; j++)
			all += expression->value(j);
	}
	printf("%ld\n", all);
	return 0;
}

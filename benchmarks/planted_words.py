"""Synthetic text with known word clusters and analogies, and scores for its word vectors."""

import random

TOPICS, TOPIC_WORDS = 20, 10
PAIRS, ROLE_WORDS, OWN_WORDS = 12, 8, 4
COMMON = 20
ROLES = ("country", "capital")


def planted_lines(count, seed=0):
    """Generates alternating sentences of two kinds with common words in between.

    The first kind has words of one of 20 topics. The second has a country or a capital, words that
    occur with all countries or all capitals, and words that occur only with this country and its
    capital. So `country3` is to `capital3` as `country7` is to `capital7`.
    """
    chance = random.Random(seed)
    for number in range(count):
        if number % 2:
            topic = chance.randrange(TOPICS)
            words = [f"topic{topic}_{chance.randrange(TOPIC_WORDS)}" for _ in range(8)]
        else:
            role, place = chance.choice(ROLES), chance.randrange(PAIRS)
            words = [f"{role}{place}"] * 2
            words += [f"{role}_word{chance.randrange(ROLE_WORDS)}" for _ in range(4)]
            words += [f"place{place}_{chance.randrange(OWN_WORDS)}" for _ in range(4)]
        words += [f"common{int(COMMON * chance.random() ** 2)}" for _ in range(3)]
        chance.shuffle(words)
        yield " ".join(words)


def clusters_found(nearest):
    """Share of nearest neighbors of topic words that belong to the same topic.

    Args:
        nearest: A function that maps a word and a count to that many words.
    """
    right = 0
    for topic in range(TOPICS):
        for place in range(TOPIC_WORDS):
            near = nearest(f"topic{topic}_{place}", TOPIC_WORDS - 1)
            right += sum(word.startswith(f"topic{topic}_") for word in near)
    return right / (TOPICS * TOPIC_WORDS * (TOPIC_WORDS - 1))


def analogies_found(analogy):
    """Share of analogies between two places for which the first answer is correct.

    Args:
        analogy: A function that maps words a, b, c to the word that is to c as b is to a.
    """
    first, second = ROLES
    asked = [(i, j) for i in range(PAIRS) for j in range(PAIRS) if i != j]
    right = sum(
        analogy(f"{first}{i}", f"{second}{i}", f"{first}{j}") == f"{second}{j}" for i, j in asked
    )
    return right / len(asked)

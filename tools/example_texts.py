"""Write ``config/example.csv``: 240 short simulated texts on eight crafts, with titles, years and authors.

    python tools/example_texts.py config/example.csv

Each text has four or five sentences about one craft. In one of five texts, the last sentence is about another craft.
The texts of a craft come mainly from certain years, and each author writes mainly about one or two crafts. In a
sentence, ``(a|b)`` is replaced by one of the alternatives. The file is the same in every run.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from pathlib import Path

N_TEXTS = 240
FIRST_YEAR, LAST_YEAR = 1991, 2020

#: craft -> (middle and spread of its years, subjects of titles, sentences)
CRAFTS = {
    "ferries": (
        (1996, 4),
        ("The ferry", "The harbour", "Rope and sail", "The lighthouse", "Ice on the lake", "A chart of the lake"),
        (
            "The ferry crosses the lake (twice a day|every morning|until the first ice).",
            "In (winter|a hard frost) ice closes the harbour and the ferry stays at its berth.",
            "Sailors twist rope and (sew|mend) sails while they wait for the wind.",
            "A storm rises quickly over the lake, and the lighthouse warns every (ferry|sailor).",
            "The keeper lights the lamp of the lighthouse at dusk.",
            "The (captain|pilot) reads the chart, which shows the depth of the lake and each harbour.",
            "Near the (rocks|shore) the water is shallow, and the ferry keeps to the deep channel.",
            "Each ferry pays the harbour for its berth (by the week|by its length).",
            "The deck is repaired with oak and pitch before the ferry sails again.",
            "A strong wind from the north fills the sail and (shortens|roughens) the crossing.",
            "Passengers and mail wait at the harbour until the storm is over.",
            "The anchor holds in clay, but it drags over (sand|gravel) when the wind turns.",
        ),
    ),
    "baking": (
        (2012, 5),
        ("Sourdough", "The village oven", "Flour and water", "Crust and crumb", "Rye bread", "A baker's day"),
        (
            "The baker mixes flour and water and lets the dough rest (overnight|until morning).",
            "A sourdough lives on flour and water and has to be fed (daily|twice a day).",
            "Salt slows the yeast and makes the dough (firm|easier to shape).",
            "A hot oven gives the bread a dark crust.",
            "(Birch|Beech) burns clean in the oven, and the baker rakes out the ash.",
            "Rye flour needs sourdough, more water and a slow oven to become bread.",
            "The loaves rise in baskets (of straw|lined with linen) before they are baked.",
            "Steam keeps the crust soft for a moment, and the crumb opens.",
            "The mill grinds grain to flour between (two stones|steel rollers).",
            "A baker weighs flour and salt, because a cup of flour is never the same.",
            "Bread from old grain is dense, and it keeps for a week.",
            "Before dawn the dough is shaped, and the first loaves are sold (at six|warm).",
        ),
    ),
    "smiths": (
        (1999, 5),
        ("The anvil", "Coal and charcoal", "Nails", "Tempering steel", "The bellows", "A hinge for a gate"),
        (
            "The smith heats the iron until it is (yellow|bright orange) and strikes it on the anvil.",
            "Charcoal burns hotter than wood, and (coal|coke) burns hotter still.",
            "The bellows blow air into the forge.",
            "Steel is hardened in water and tempered in (oil|sand) so that it does not break.",
            "A hammer of two pounds is enough for nails and small hinges.",
            "Tongs hold the hot iron while the hammer shapes it.",
            "The blade is ground, polished and (oiled|given a handle of ash).",
            "A (horseshoe|hinge) is bent over the horn of the anvil.",
            "Rust eats iron that is not painted or waxed.",
            "The colour of the steel shows the smith how hot the forge is.",
            "Two bars of iron are welded in the forge with (sand|borax) and quick blows.",
            "An apprentice makes nails for a year before he (touches|tempers) a blade.",
        ),
    ),
    "bees": (
        (2015, 4),
        ("The swarm", "Honey from lime trees", "Wintering a hive", "The queen", "Wax and frames", "A strong colony"),
        (
            "The beekeeper opens the hive on a (warm|calm) day and looks for the queen.",
            "A swarm leaves the hive in (May|June) and hangs in a tree.",
            "Bees gather nectar from lime trees, clover and (heather|rape).",
            "The colony needs fifteen kilograms of honey to live through the winter.",
            "Smoke calms the bees while the frames are lifted.",
            "The queen lays (a thousand|two thousand) eggs a day in early summer.",
            "Wax is melted, cleaned and pressed into new sheets for the frames.",
            "Mites weaken the colony, and the beekeeper counts them (every month|on a board below the hive).",
            "Drones are driven out of the hive before autumn.",
            "Honey is spun from the combs and (strained|stirred) before it is put into jars.",
            "Workers guard the entrance of the hive against wasps.",
            "A weak colony is joined with a strong one before the frost.",
        ),
    ),
    "weaving": (
        (2003, 6),
        ("The loom", "Dyeing wool", "Linen", "A pattern of twill", "Spinning", "The warp"),
        (
            "The weaver stretches the warp on the loom and counts the threads (twice|by candlelight).",
            "The shuttle carries the weft from side to side.",
            "Wool is washed, carded and spun before it is dyed.",
            "(Madder|Cochineal) dyes the yarn red, and woad dyes it blue.",
            "Alum fixes the dye in the wool.",
            "Linen is made from flax, which is soaked, (beaten|broken) and combed.",
            "A twill shows diagonal lines in the cloth.",
            "The spindle twists the fibres into a (thin|even) yarn.",
            "Loose threads make a soft cloth, and tight threads make a (stiff|strong) one.",
            "Pedals lift the shafts of the loom, and the pattern follows their order.",
            "The cloth is fulled in warm water until the weave closes.",
            "A scarf takes the weaver a day, a blanket (a week|ten days).",
        ),
    ),
    "printing": (
        (2001, 6),
        ("Setting type", "The press", "Ink", "A page of proofs", "Paper from rags", "Woodcuts"),
        (
            "The printer sets the type letter by letter and locks it in a (frame|chase).",
            "Ink is made from soot and linseed oil.",
            "The press squeezes the damp paper onto the inked type.",
            "A proof is read aloud, and wrong letters are (replaced|marked in the margin).",
            "Paper is made from linen rags that are beaten to pulp.",
            "A woodcut is carved from (pear|box) wood and printed with the text.",
            "The compositor reads the lines of type upside down.",
            "Sheets are folded, gathered and sewn into a book.",
            "Worn letters are melted, and new type is cast from lead and (tin|antimony).",
            "A good press prints two hundred sheets (an hour|before noon).",
            "The margin of a page is twice as wide at the foot as at the head.",
            "Printed sheets hang on lines until the ink is dry.",
        ),
    ),
    "orchards": (
        (2009, 6),
        ("Grafting apples", "Pruning in winter", "Cider", "Frost in the orchard", "Old pears", "The harvest"),
        (
            "Apple trees are pruned in (late winter|February), when the branches are bare.",
            "A graft joins a twig of a good apple to a strong root.",
            "Late frost kills the blossom of (cherries|plums) and early pears.",
            "Apples are picked with a twist and laid in (boxes of straw|cool cellars).",
            "Cider is pressed from sharp and sweet apples together.",
            "Ladders lean in the orchard from August to October.",
            "Pears ripen off the tree and are eaten within a (week|few days).",
            "Old trees carry fruit every second year unless the blossom is thinned.",
            "Grass is mown under the trees so that fallen fruit can be (gathered|found).",
            "Sheep graze in the orchard after the harvest.",
            "Canker spreads from wounds of the bark, and sick branches are burned.",
            "Varieties with red flesh make a pink cider.",
        ),
    ),
    "stars": (
        (2006, 7),
        ("Polishing a mirror", "Meteors in August", "The comet", "A map of the moon", "Dark nights", "The observatory"),
        (
            "The telescope is pointed at (Saturn|Jupiter) soon after dusk.",
            "Meteors fall in August, up to sixty of them an hour.",
            "The mirror of the telescope is ground and polished by hand.",
            "A comet shows a tail of gas and dust when it nears the sun.",
            "Light from the town hides faint stars and the Milky Way.",
            "The moon is drawn at the eyepiece, crater by crater.",
            "An eclipse of the moon turns it (copper|dark) red.",
            "The observatory opens its dome on (clear|moonless) nights.",
            "Variable stars are compared with their neighbours night after night.",
            "Cold air is steady, and planets show fine detail in (winter|the hour before dawn).",
            "A camera gathers the light of a galaxy for an hour.",
            "The orbit of a planet is measured against the stars behind it.",
        ),
    ),
}
#: author -> crafts, the first of which they write about most
AUTHORS = {
    "Lund": ("ferries", "stars"), "Okafor": ("ferries",), "Reyes": ("ferries", "smiths"), "Haddad": ("baking",),
    "Silva": ("baking", "orchards"), "Brandt": ("baking", "bees"), "Novak": ("smiths",),
    "Adeyemi": ("smiths", "printing"), "Kaya": ("bees",), "Moreau": ("bees", "orchards"), "Sato": ("weaving",),
    "Lindgren": ("weaving", "printing"), "Weiss": ("printing",), "Castro": ("orchards",), "Mbeki": ("stars",),
    "Ivanov": ("stars", "weaving"),
}  # fmt: skip


def rows(n_texts: int = N_TEXTS) -> list[dict[str, str | int]]:
    """Return one row per text with title, year, authors joined by ``"; "`` and text, sorted by year."""
    rng = random.Random(1)
    made: list[dict[str, str | int]] = []
    for number in range(n_texts):
        craft = list(CRAFTS)[number % len(CRAFTS)]
        (middle, spread), titles, sentences = CRAFTS[craft]
        year = min(max(round(rng.gauss(middle, spread)), FIRST_YEAR), LAST_YEAR)
        chosen = rng.sample(sentences, rng.choice((4, 5)))
        if rng.random() < 0.2:
            other = rng.choice([one for one in CRAFTS if one != craft])
            chosen[-1] = rng.choice(CRAFTS[other][2])
        text = re.sub(r"\(([^)]*)\)", lambda found: rng.choice(found[1].split("|")), " ".join(chosen))
        weights = [3 if of[0] == craft else 1 if craft in of else 0.04 for of in AUTHORS.values()]
        authors = list(dict.fromkeys(rng.choices(list(AUTHORS), weights, k=rng.choice((1, 1, 2)))))
        title = f"{rng.choice(titles)}, {['notes', 'letters', 'questions', 'a report'][number // len(CRAFTS) % 4]}"
        made.append({"title": title, "year": year, "authors": "; ".join(authors), "text": text})
    return sorted(made, key=lambda row: row["year"])


def main(path: str | Path, n_texts: int = N_TEXTS) -> None:
    """Write the table."""
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["title", "year", "authors", "text"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(n_texts))


if __name__ == "__main__":
    main(sys.argv[1])

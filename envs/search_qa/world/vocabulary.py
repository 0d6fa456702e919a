"""The words that names are made of, in the full and in the micro world."""

from __future__ import annotations


def _split(text: str) -> list[str]:
    return text.split()


ONSETS = _split("b br c ch d dr f fl g gr h j k kr l m n p pr qu r s sh st t th tr v w z")
VOWELS = _split("a e i o u ai au ea ie ou")
CODAS = _split("l m n r s t nd rk rn ss th ld")
PLACE_ENDS = _split("ford wick mere den holt combe gill haven stead burg dorf vik minster bury")
NEAR_PLACES = _split("New Old Upper Lower North South East West Great Little")
ORG_WORDS = {
    "university": "University Academy College",
    "publisher": "Press Editions Books",
    "company": "Works Industries Lines Mills Mining",
    "museum": "Museum Gallery Collection",
    "newspaper": "Courier Herald Gazette Observer",
    "orchestra": "Philharmonic Orchestra Ensemble",
}
EVENT_WORDS = {
    "battle": "Siege Landing Uprising",
    "festival": "Festival Fair Carnival",
    "expedition": "Expedition Voyage Survey",
    "conference": "Congress Conference Assembly",
}
ADJECTIVES = _split(
    "Amber Ashen Bitter Black Blind Borrowed Broken Burning Careless Crooked Crimson Distant "
    "Drowned Eastern Empty Endless Faithful Fallen Final Flooded Forgotten Frozen Gentle "
    "Gilded Glass Golden Grey Hidden Hollow Hungry Idle Inner Iron Ivory Leaden Lonely Lost "
    "Midnight Moonlit Narrow Northern Painted Patient Quiet Restless Sacred Salt Scarlet "
    "Second Secret Seventh Silent Silver Sleeping Stolen Sunken Thirsty Velvet Wandering "
    "Western White Wicked Winter Wooden Yellow"
)
NOUNS = _split(
    "Acrobat Almanac Anchor Apprentice Archer Atlas Avenue Balcony Bargain Beacon Beggar "
    "Bridge Candle Captain Caravan Carousel Cathedral Cellar Clock Comet Compass Corridor "
    "Courtyard Cradle Daughter Diary Diver Doorway Dream Echo Ember Emperor Falcon Ferry "
    "Fiddler Fountain Garden Gardener Ghost Glacier Guest Hangman Harbour Harvest Heron "
    "Horizon Hour Island Juggler Keeper Kingdom Labyrinth Ladder Lantern Lagoon Letter "
    "Library Lighthouse Locksmith Lullaby Machine Magpie Market Mask Meadow Merchant "
    "Messenger Mirror Monastery Mountain Nightingale Oath Orchard Organ Palace Parade "
    "Passenger Pharmacy Pilgrim Portrait Prophet Puppet Quarry Raven Reservoir Ribbon Riddle "
    "Ruin Sailor Sculptor Season Shepherd Shore Shipwreck Sparrow Spiral Staircase Station "
    "Stranger Summer Swan Tavern Telegraph Tide Tower Traveller Treasure Tunnel Umbrella "
    "Valley Vineyard Violin Voyage Waltz Watchman Weaver Whale Widow Window Wolf Workshop"
)
WORK_FORMS = (
    "The {a} {n}",
    "{a} {n}",
    "The {n} and the {m}",
    "A {n} for the {m}",
    "The {m} of the {a} {n}",
)

# A name is one word of the left list and one of the right list of its category, so 176 words name
# everything, and held-out names are made of words that training has seen.
NAME_PARTS: dict[str, tuple[str, str]] = {
    "person": (
        "Ada Bea Cal Dan Eli Fay Gus Hal Ida Jon Kai Leo Mia Ned Ola Pia Quin Rob Sol Tia Una Vic "
        "Wes Yan Zoe Abe Bud Cleo Dora Emil Finn Gwen Hugo Iris Jude Kurt",
        "Ash Brook Croft Dale East Frost Grove Hill Inn Jay Knoll Lake Moss North Oak Pond Quill "
        "Reed Stone Thorn Vale West Yew Birch Clay Dove Elm Fern Glen Heath Iron Kite Lark Mill "
        "Nest Pike",
    ),
    "work": (
        "Red Blue Dim Gold Cold Warm Lost Old New Last First Wild Calm Dark Pale Deep High Low "
        "Long Thin Wide Fast Slow Loud Still Sharp",
        "Lamp Fox Hall Door Rose Tide Wolf Road Moon Crown Hand Song Field Gate Storm Mask Boat "
        "Tower Bell Mirror Garden Winter Harbor Letter Orchard Signal",
    ),
    "place": (
        "Lum Kar Dro Fel Gan Hob Jor Mel Nar Oss Pel Rud Sen Tol Ur Vos",
        "Tor Bay Ford Wick Mere Den Holt Combe Firth Gill Haven Isle Ness Port Rath Stead",
    ),
    "org": (
        "Tin Silk Salt Coal Wool Amber Copper Glass Linen Paper Steel Sugar Timber Velvet",
        "Guild Press Bank Club Works Union League Trust House Lodge Order Circle Company School",
    ),
}

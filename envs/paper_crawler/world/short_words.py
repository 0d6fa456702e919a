"""Words of the micro world: common and short, so that a small vocabulary holds them all."""

THINGS = """river stream brook, wheat grain crop, bird hen owl, bridge arch span, market shop fair,
forest wood grove, engine motor pump, school class college, garden yard lawn, city town village"""
TASKS = """map chart plan, count tally sum, repair fix mend, watch guard observe, trade sale deal,
growth rise gain"""
METHODS = """wave net, ripple mesh, swell web; gate tree, door branch, latch twig; deep memory,
long recall, far store; soft vote, mild ballot, gentle choice; fast sort, quick rank, swift order;
mirror pair, glass twin, echo double; random walk, chance stroll, dice hike; heat flow, warm drift,
fire current; rule book, law list, code page; small teacher, little tutor, tiny coach; ring graph,
loop link, circle chain; light filter, lamp sieve, beam strainer"""
FIELDS = """water earth land, farm food harvest, road build stone, animal wild nature, people home
life, money work craft"""
DOMAINS = """outdoor open field, indoor closed house"""
ADJECTIVES = """good new old large calm safe clear clean true plain sharp steady simple common
strong early late rare broad narrow round flat heavy thin"""
NOUNS = """result idea point case side part view step form line level range group set mark tool
note space cost time rate size limit test"""
HEADS = """red blue green black white gold silver pink brown gray purple orange amber ivory jade
ruby rose navy teal coral plum olive lime lilac mint pearl rust sand snow storm sun moon star
cloud frost mist thunder copper iron tin"""
TAILS = """fox bear wolf deer hare mole seal crab swan crow dove hawk frog toad newt moth wasp ant
bee goat lamb pony mule ox boar lynx puma lion tiger camel whale shark trout pike eel clam snail
worm mouse rat"""

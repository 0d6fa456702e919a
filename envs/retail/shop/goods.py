"""What the generated shop sells: product types, their options, and a price to start from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProductType:
    """A product type.

    Attributes:
        name: What it is called.
        price: Price that variants lie around.
        options: Option keys with their values.
    """

    name: str
    price: float
    options: tuple[tuple[str, tuple[str, ...]], ...]


def _parse_table(table: str) -> tuple[ProductType, ...]:
    kinds = []
    for line in table.strip().splitlines():
        name, price, options = line.split("|")
        read = (option.split(":") for option in options.split(";"))
        kinds.append(
            ProductType(name, float(price), tuple((key, tuple(v.split(","))) for key, v in read))
        )
    return tuple(kinds)


FULL = _parse_table("""
Air Fryer|129|color:black,white,red;capacity:3 litre,5 litre,7 litre;control:dial,touchscreen
Alarm Clock|34|color:silver,teal,ivory;display:analog,digital;power source:mains,batteries
Backpack|82|color:navy,olive,grey,maroon;volume:18 litre,26 litre,34 litre;material:canvas,nylon
Bath Towel|27|color:sand,aqua,charcoal,white;size:hand,bath,sheet;weave:terry,waffle
Bed Sheet|64|color:cream,navy,sage;size:single,double,king;fabric:percale,sateen,flannel
Bike Lock|46|type:chain,folding,u-lock;length:60 cm,85 cm,110 cm;key:combination,keyed
Blender|118|color:black,steel,mint;jug:glass,tritan;power:500 watt,800 watt,1200 watt
Board Game|49|players:two,four,six;theme:space,farming,castles;language:english,spanish
Bookshelf|158|finish:oak,walnut,white;shelves:3 shelves,4 shelves,5 shelves;width:60 cm,80 cm
Camping Stove|73|fuel:butane,propane,wood;burners:one burner,two burners;color:green,black
Card Reader|29|interface:usb-a,usb-c;slots:two slots,four slots;color:black,grey
Coffee Grinder|92|burr:ceramic,steel;color:copper,black,cream;hopper:150 g,250 g,350 g
Coffee Maker|142|type:drip,espresso,french press;color:black,silver,red;cups:4 cups,8 cups,12 cups
Cutting Board|31|material:bamboo,maple,plastic;size:small,medium,large;groove:with groove,no groove
Desk|346|surface:oak,bamboo,glass;width:120 cm,140 cm,160 cm;height:fixed,adjustable
Desk Fan|38|color:white,black,pink;speeds:2 speeds,3 speeds;mount:clip,stand
Digital Piano|612|keys:61 keys,76 keys,88 keys;color:black,white;stand:with stand,no stand
Door Mat|24|material:coir,rubber,cotton;size:small,medium,wide;pattern:plain,striped,floral
Dumbbell Pair|57|weight:2 kg,5 kg,8 kg,10 kg;coating:neoprene,rubber,chrome
Electric Kettle|52|color:black,white,steel;capacity:1 litre,1.5 litre,2 litre;base:corded,cordless
Electric Shaver|97|type:foil,rotary;color:blue,black;charge:usb,dock;wet use:waterproof,dry only
External Drive|121|storage:500 gb,1 tb,2 tb,4 tb;interface:usb-c,thunderbolt;color:black,silver
Fitness Watch|207|color:black,rose,lime;strap:leather,silicone,metal;screen:oled,lcd
Floor Lamp|88|color:brass,black,white;light:warm,neutral,cool;shade:linen,paper,glass
Garden Hose|41|length:10 m,20 m,30 m;material:rubber,vinyl,hybrid;color:green,yellow
Gaming Mouse|63|color:black,white,purple;sensor:optical,laser;connection:wired,wireless
Hair Dryer|71|color:black,coral,white;power:1200 watt,1800 watt,2200 watt;nozzle:diffuser,narrow
Headphones|163|type:in-ear,on-ear,over-ear;connection:wired,wireless;color:black,blue,white
Hiking Boots|134|size:38,40,42,44;material:leather,synthetic;height:ankle,high
Ink Pen|19|ink:blue,black,violet;tip:fine,broad;barrel:metal,resin,wood
Jigsaw Puzzle|28|pieces:500 pieces,1000 pieces,1500 pieces;theme:harbour,animals,maps,art
Keyboard|104|layout:full size,compact,tenkeyless;switch:clicky,linear,soft;backlight:rgb,white,unlit
Laptop|1190|screen:13 inch,14 inch,16 inch;memory:8 gb,16 gb,32 gb;color:silver,graphite
Luggage Set|189|color:navy,red,black;pieces:two-piece,three-piece;shell:hard,soft
Microphone|116|pattern:cardioid,omni;connection:usb,xlr;color:black,silver
Monitor|338|screen:24 inch,27 inch,32 inch;resolution:1080p,1440p,4k;panel:ips,va
Office Chair|254|material:mesh,leather,fabric;color:black,grey,blue;arms:fixed arms,adjustable arms
Picture Frame|22|material:wood,metal,acrylic;size:10x15,20x30,30x40;color:black,gold,natural
Pillow|37|fill:down,latex,fibre;size:standard size,queen size;firmness:soft,medium firm,firm
Projector|476|resolution:720p,1080p,4k;throw:short throw,long throw;color:white,grey
Rain Jacket|99|size:xs,s,m,l,xl;color:yellow,navy,black,red;lining:fleece,unlined
Rice Cooker|84|capacity:1 litre,1.8 litre,3 litre;color:white,black,steel;lid:glass lid,sealed lid
Running Shoes|126|size:37,39,41,43,45;color:orange,black,white;sole:trail,road
Skateboard|78|deck:maple,bamboo,plastic;length:28 inch,31 inch,34 inch;design:plain,graphic
Sleeping Bag|109|season:summer,three-season,winter;fill:down,synthetic;length:regular,long
Sunglasses|68|frame:black,tortoise,clear;lens:grey,brown,green;coating:polarized,mirrored
T-Shirt|26|size:xs,s,m,l,xl;color:blue,white,green,black;fabric:cotton,linen;neck:crew neck,v-neck
Tent|231|sleeps:two people,four people,six people;color:orange,green,blue;season:three-season,winter
Wall Clock|43|diameter:25 cm,30 cm,40 cm;color:white,black,copper;numbers:roman,arabic
Yoga Block|17|material:cork,foam,wood;color:grey,teal,plum;pack:single pack,double pack
""")

MICRO = _parse_table("""
cup|6|color:red,blue,black;size:small,large
hat|12|color:red,blue,black;size:small,large
lamp|30|color:red,white,black;size:small,large
bag|40|color:blue,green,black;size:small,large
belt|15|color:brown,white,black;size:small,large
bowl|8|color:red,blue,white;size:small,large
clock|25|color:red,white,green;size:small,large
drum|60|color:blue,white,black;size:small,large
fan|35|color:blue,white,green;size:small,large
kite|18|color:red,green,black;size:small,large
rug|45|color:brown,blue,green;size:small,large
tent|90|color:brown,red,green;size:small,large
""")

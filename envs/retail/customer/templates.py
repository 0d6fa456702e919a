"""Templates of what customers say, by act; ``[a|b]`` is a choice, ``{slot}`` is filled in.

``HELD_OUT`` is wording that training never shows; ``TERSE`` is for people of few words and for
the micro shop.
"""

from __future__ import annotations

Table = dict[str, tuple[str, ...]]

PLAIN: Table = {
    "open_cancel": (
        "[Hi|Hello|Good day], I [want|need|would like] to cancel an order[| of mine].",
        "[Could|Can] you [help me|assist me] [cancel|with cancelling] an order?",
    ),
    "open_return": (
        "[Hi|Hello|Good day], I [want|need|would like] to return something[| I bought].",
        "[Could|Can] I [send something back|return something] that I [bought|received]?",
    ),
    "open_exchange": (
        "[Hi|Hello|Good day], I [want|need|would like] to exchange something[| I received].",
        "[Could|Can] I [exchange|swap] something that [arrived|was delivered]?",
    ),
    "open_modify": (
        "[Hi|Hello|Good day], I [want|need|would like] to change an item in [an|my] "
        "order[| please].",
        "[Could|Can] I still [change|switch] something in an order that [is pending|"
        "has not shipped]?",
    ),
    "open_payment": (
        "[Hi|Hello|Good day], I [want|need|would like] to pay for an order [another "
        "way|differently].",
        "[Could|Can] I [change|switch] the payment method of an order?[| Please.]",
    ),
    "open_ship_to": (
        "[Hi|Hello|Good day], an order [should|has to|needs to] go to another address.",
        "[Could|Can] you [change|correct] the shipping address of an order[| please]?",
    ),
    "open_move": (
        "[Hi|Hello|Good day], I [moved|have moved] and my address on file is [wrong|old].",
        "[Could|Can] you [update|change] my default address[| please]?",
    ),
    "open_info": (
        "[Hi|Hello|Good day], I have [a question|something to ask]. {ask}",
        "[There is something I want to know.|I am wondering about something.|Quick "
        "question.] {ask}",
    ),
    "open_advice": (
        "[Hi|Hello|Good day], I [want|would like] your opinion: {about}",
        "[Tell me honestly|Just between us|As an expert], {about}",
    ),
    "open_other": (
        "[Hi|Hello|Good day], I need [help|assistance|support]: {about}",
        "[There is a problem|I have an issue|Something is wrong]: {about}",
    ),
    "also": ("[Also|And], [I would like|I want|I need] to {what}[| as well].",),
    "next": (
        "[Thanks|Thank you|Great]. [Next|Now|There is one more thing], I [want|need] to {what}.",
        "[Good|Fine]. I [also|then] [want|would like] to {what}.",
    ),
    "next_say": (
        "[Thanks|Thank you|Great|Good]. [One more thing:|Another thing:|Also:] {ask}",
        "[All right|Okay|Lovely]. [And then|Besides that], {ask}",
    ),
    "email": (
        "[My email is|It is|You can find me under|The address is] {email}[|, thanks].",
        "[Sure|Of course], {email}.",
    ),
    "name": (
        "[I am|My name is|This is] {first} {last}, [zip code|zip|postal code] {code}.",
        "[Sure|Of course]: {first} {last}, {code}.",
    ),
    "no_email": (
        "I [do not remember|forgot|cannot recall] [my email|which email I used]. "
        "[Can I give my name and zip code|Would name and zip code do]?",
    ),
    "no_name": (
        "I [would rather not|prefer not to] give [my name and zip|that]. "
        "[Can I give my email|Would my email do] instead?",
    ),
    "no_identity": (
        "[That is all I remember|I do not have anything else|I cannot tell you more than that]"
        "[| about myself|, sorry].",
    ),
    "order": (
        "[It is order|The order number is|That would be|The order is] {order}[|, I think].",
        "[Sure|Of course], {order}.",
    ),
    "order_words": (
        "I [do not have|cannot find|do not know] the number[|, sorry]. [It is|That is] {order}.",
        "[No idea about the number|I lost the number], [but it is|it is] {order}.",
    ),
    "no_order": (
        "[It is not about|That has nothing to do with|I do not mean|This is not for] "
        "a certain order[|, no].",
    ),
    "items": (
        "[It is about|I mean|That would be|It concerns] the {items}[|, please].",
        "[The|Just the|Only the] {items}.",
    ),
    "whole": (
        "[The whole order|All of it|Everything in it|The entire order], [please|all items].",
    ),
    "wants": (
        "[I would like|I want|Please give me|I have in mind] {wants}.",
        "[It should be|Make it|Preferably] {wants}[|, please].",
    ),
    "method": (
        "[Please use|Use|I would like to use|Put it on] {method}[|, please].",
        "[With|To] {method}.",
    ),
    "reason": (
        "[Because|The reason is that|Well,|Simply because] {reason}[|, really].",
        "[Honestly|Simply put], {reason}[|, that is all].",
    ),
    "address": (
        "[The address is|It should be|Please write|It is now] {address}[|, thanks].",
        "[Sure|Of course]: {address}.",
    ),
    "no_preference": (
        "[I have no preference|I do not mind|Whatever is easiest|That does not matter to me]"
        "[| there|, really].",
    ),
    "yes": ("[Yes|Yes, please|Yes, that is right|Yes, go ahead|Yes, correct][|, thank you].",),
    "wrong_order": (
        "[No|No, wait|That is not right], [it is|I meant] {order}[|, not another one].",
    ),
    "wrong_items": (
        "[No|No, wait|That is not right], [only|I meant] the {items}[|, nothing else].",
    ),
    "wrong_wants": ("[No|No, wait|That is not right], [I want|I said] {wants}[|, please].",),
    "wrong_method": (
        "[No|No, wait|That is not right], [please use|it should be] {method}[|, please].",
    ),
    "wrong_reason": (
        "[No|No, wait|That is not right], [the reason is that|it is because] "
        "{reason}[|, as I said].",
    ),
    "wrong_address": (
        "[No|No, wait|That is not right], [the address is|it is] {address}[|, please].",
    ),
    "wrong_value": (
        "[Are you sure about that amount|Is that amount right]? [Please check it "
        "again|Could you compute it again].",
        "[Hm, that sum looks off|That number seems wrong], [please|could you] check it.",
    ),
    "missing_order": (
        "[Which order|For which order|What order number] [would that be|is that][|, exactly]?",
    ),
    "missing_items": (
        "[Which items|What items exactly|For which items] [would that be|is that][| now]?",
    ),
    "missing_wants": (
        "[Which one|Which variant|What exactly] [would I get|will it become][|, in detail]?",
    ),
    "missing_method": (
        "[Which payment method|What method|Which card or account] [would that use|is "
        "that][| then]?",
    ),
    "missing_reason": (
        "[What reason|Which reason] [would you enter|would you write down|goes in|do you note]?",
    ),
    "missing_address": (
        "[What address|Which address] [would you enter|would you write down|goes in|do you note]?",
    ),
    "missing_value": (
        "[How much is|What is|What would be|Tell me first:] the {worth}[|, exactly]?",
    ),
    "decline": (
        "[No, I did not ask for that|No, that is not what I want|No, please do not]. "
        "I [want|wish] to {what}.",
        "[No thanks|No thank you], I [only|just] want to {what}.",
    ),
    "above_limit": (
        "[That is too much|That is more than I want to pay|No, over {limit} is too "
        "much|No, my limit is {limit}][|, sorry].",
    ),
    "below_limit": (
        "[That is too little|That is less than I want back|No, less than {limit} back is too "
        "little|No, I want at least {limit} back][|, sorry].",
    ),
    "insist": (
        "[Really|Are you sure]? [I really need this|It is important to me][|, please].",
        "[Please make an exception|Can you not do something|There must be a way].",
    ),
    "accept": ("[Okay, I understand|Fine, I see|All right then|Too bad, but okay][|, thanks].",),
    "contest": (
        "[That cannot be right|I do not think so|That is strange]. [Please check "
        "again|Look once more].",
        "[I believe it is possible|It should be possible], [please|could you] check.",
    ),
    "went_through": (
        "[Did it really go through|Is it really done]? [I see no change yet|Nothing "
        "has changed here].",
        "[I see nothing on my side|My account shows no change], [is it done|did it work]?",
    ),
    "mind": (
        "[Wait, I changed my mind|Actually, no|Hold on, I thought again|Oh, one "
        "second]. [I want|I would like] to {what} instead.",
    ),
    "fallback": ("[Then|In that case|Okay, then] [I want|I would like] to {what}[|, please].",),
    "too_many": (
        "[That is a lot of numbers|Too many numbers|I cannot follow all of that]. "
        "[Just tell me|I only want to know|Please only this]: {ask}",
    ),
    "again": (
        "[As I said|Like I said|Again], I [want|need] to {what}.",
        "[I still|I just] [want|need] to {what}.",
    ),
    "again_say": (
        "[As I said|Like I said|Again|Once again|Well], {ask}",
        "[I still want to know|My question was|What I asked was]: {ask}",
    ),
    "sorry": (
        "[Sorry, I do not follow|I am not sure what you mean|I do not understand|"
        "Sorry, what]. I [want|need] to {what}.",
    ),
}

HELD_OUT: Table = {
    "open_cancel": (
        "[I'd be glad if|It'd be great if] you could [scrap|call off] a purchase of mine.",
    ),
    "open_return": (
        "[I'm not happy with a purchase|A purchase disappoints me] and it should go back.",
    ),
    "open_exchange": ("[I got the wrong variant|What came isn't ideal], so [let's|I'd] swap it.",),
    "open_modify": (
        "[One thing in my open order|A thing I ordered] should be a [different|another] version.",
    ),
    "open_payment": (
        "[I'd rather|I prefer to] settle an open order from [another source|elsewhere].",
    ),
    "open_ship_to": ("[A parcel of mine|One of my parcels] is headed to the wrong [place|door].",),
    "open_move": ("[I live somewhere else now|New home here], so [fix|correct] my profile.",),
    "open_info": ("[I'm curious|Tell me something]: {ask}",),
    "open_advice": ("[You know this stuff|You have taste]: {about}",),
    "open_other": ("[Here's the thing|Listen]: {about}",),
    "also": ("[On top of that|Plus], I'd like to {what}.",),
    "next": ("[Cheers|Brilliant]. [Moving on|While we're here], I'd like to {what}.",),
    "next_say": ("[Cheers|Brilliant]. [While we're here|And tell me]: {ask}",),
    "email": ("[Try|Look for] {email}.",),
    "name": ("{first} {last} [here|speaking], my zip is {code}.",),
    "no_email": (
        "[My email slipped my mind|No clue which email]. [Is name plus zip okay|Name plus zip]?",
    ),
    "no_name": ("[I'd skip the name|No name please]. [Is my email okay|Email instead]?",),
    "no_identity": ("[I've told you all I know|There's no more I can offer].",),
    "order": ("[Should be|The one numbered] {order}.",),
    "order_words": ("[The number's gone|I threw the slip away]; [look for|it's] {order}.",),
    "no_order": ("[This isn't tied to an order|No order in particular].",),
    "items": ("[I'm talking about|Take] the {items}.",),
    "whole": ("[The lot|The entire thing].",),
    "wants": ("[Ideally|If possible] {wants}.",),
    "method": ("[Let's go with|I'd pick] {method}.",),
    "reason": ("[Truth is|Look], {reason}.",),
    "address": ("[Write down|Note] {address}.",),
    "no_preference": ("[Up to you|Either is fine by me].",),
    "yes": ("[Yep, do it|Yes, sounds good|Yes, exactly].",),
    "wrong_order": ("[Nope|Hang on], [I'm talking about|the right one is] {order}.",),
    "wrong_items": ("[Nope|Hang on], [just|solely] the {items}.",),
    "wrong_wants": ("[Nope|Hang on], [it ought to be|get me] {wants}.",),
    "wrong_method": ("[Nope|Hang on], [take|go with] {method}.",),
    "wrong_reason": ("[Nope|Hang on], [truth is|really], {reason}.",),
    "wrong_address": ("[Nope|Hang on], [note|the right one is] {address}.",),
    "wrong_value": ("[I'd double-check that figure|That figure seems off], please.",),
    "missing_order": ("[And which order are we on|Whose number are we at], please?",),
    "missing_items": ("[And which things|Which of my things], please?",),
    "missing_wants": ("[And what do I get|What comes in its place], please?",),
    "missing_method": ("[And from which account|By what means], please?",),
    "missing_reason": ("[And on what grounds|With which reason], please?",),
    "missing_address": ("[And to which place|Which street and zip], please?",),
    "missing_value": ("[Before I agree|First], what's the {worth}?",),
    "decline": ("[Nope, not that|Not what I'm after]. [The point is|I'm here] to {what}.",),
    "above_limit": ("[Over {limit} I'm out|That's past my limit].",),
    "below_limit": ("[Under {limit} back I'm out|That's short of what I'd take].",),
    "insist": ("[Come on|Oh please], [bend the rules once|surely you can]?",),
    "accept": ("[Alright, fair enough|Shame, but fine].",),
    "contest": ("[I beg to differ|That's odd], [have another look|try once more].",),
    "went_through": (
        "[Sure it worked|Is it truly in place]? [It looks the same to me|I can't see it].",
    ),
    "mind": ("[Scratch that|On second thought], [I'd rather|let me] {what}.",),
    "fallback": ("[If so|Well then], [let me|I'd rather] {what}.",),
    "too_many": ("[One figure will do|I'm lost in figures]: {ask}",),
    "again": ("[Back to the point|Once more]: I'm here to {what}.",),
    "again_say": ("[Back to the point|Once more]: {ask}",),
    "sorry": ("[You lost me|Beg your pardon]? I'm here to {what}.",),
}

TERSE: Table = {
    "open_cancel": ("Cancel an order.", "I want to cancel an order."),
    "open_return": ("Return an item.", "I want to return an item."),
    "open_exchange": ("Exchange an item.", "I want to exchange an item."),
    "open_modify": ("Change an item.", "I want to change an item."),
    "open_payment": ("Change payment.", "I want to pay another way."),
    "open_ship_to": ("Change shipping address.", "Wrong shipping address."),
    "open_move": ("Change my address.", "I moved."),
    "open_info": ("{ask}", "Question: {ask}"),
    "open_advice": ("{about}", "Question: {about}"),
    "open_other": ("{about}", "Hi. {about}"),
    "also": ("Also {what}.", "And {what}."),
    "next": ("Next: {what}.", "Now {what}."),
    "next_say": ("{ask}", "Next: {ask}"),
    "email": ("{email}", "It is {email}"),
    "name": ("{first} {last}, {code}", "{first} {last} {code}"),
    "no_email": ("I forgot my email.", "No email. Name and zip?"),
    "no_name": ("No name. Email?", "Use my email."),
    "no_identity": ("No more.", "That is all."),
    "order": ("{order}", "Order {order}"),
    "order_words": ("No number. {order}.", "It is {order}."),
    "no_order": ("No order.", "None."),
    "items": ("The {items}.", "{items}."),
    "whole": ("All of it.", "The whole order."),
    "wants": ("{wants}.", "Make it {wants}."),
    "method": ("{method}.", "Use {method}."),
    "reason": ("{reason}.", "Because {reason}."),
    "address": ("{address}.", "It is {address}."),
    "no_preference": ("No preference.", "Any."),
    "yes": ("Yes.", "Yes, please."),
    "wrong_order": ("No, {order}.", "No. It is {order}."),
    "wrong_items": ("No, the {items}.", "No. The {items}."),
    "wrong_wants": ("No, {wants}.", "No. I want {wants}."),
    "wrong_method": ("No, {method}.", "No. Use {method}."),
    "wrong_reason": ("No, {reason}.", "No. {reason}."),
    "wrong_address": ("No, {address}.", "No. {address}."),
    "wrong_value": ("Check the amount.", "Wrong amount?"),
    "missing_order": ("Which order?", "What order?"),
    "missing_items": ("Which items?", "What items?"),
    "missing_wants": ("Which one?", "What will I get?"),
    "missing_method": ("Which payment?", "What method?"),
    "missing_reason": ("Which reason?", "What reason?"),
    "missing_address": ("Which address?", "What address?"),
    "missing_value": ("How much is the {worth}?", "The {worth}?"),
    "decline": ("No. I want to {what}.", "No, {what}."),
    "above_limit": ("Too much.", "No, too much."),
    "below_limit": ("Too little.", "No, too little."),
    "insist": ("Please.", "I need it."),
    "accept": ("Okay.", "Fine."),
    "contest": ("Check again.", "Wrong. Check again."),
    "went_through": ("Is it done?", "Did it work?"),
    "mind": ("No. Rather {what}.", "I changed my mind: {what}."),
    "fallback": ("Then {what}.", "Okay, {what}."),
    "too_many": ("One number. {ask}", "Only this: {ask}"),
    "again": ("I want to {what}.", "{what}."),
    "again_say": ("{ask}", "So: {ask}"),
    "sorry": ("What? I want to {what}.", "I want to {what}."),
}

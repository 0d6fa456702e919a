"""What assistants say, with what each message does; written apart from the parser's words."""

HELD_OUT: tuple[tuple[str, str], ...] = (
    # identity
    ("Hi there! Before I can look into anything, what's the email on your account?", "ask_email"),
    ("To get started I'll need the e-mail address you registered with.", "ask_email"),
    ("Sure thing! Can you share your email so I can pull up your profile?", "ask_email"),
    ("Happy to assist. Please provide the email associated with your account.", "ask_email"),
    ("For security, could you verify your identity first?", "ask_email"),
    (
        "No worries. Then please give me your first and last name along with your zip code.",
        "ask_name",
    ),
    ("Alternatively, what is your full name and ZIP?", "ask_name"),
    ("I couldn't locate that address. May I have your name and postal code instead?", "ask_name"),
    ("Could I get your name, last name and zip code, please?", "ask_name"),
    ("Would you mind telling me your full name and the zip code on file?", "ask_name"),
    # orders
    ("Which order are you referring to?", "ask_order"),
    ("Could you give me the order ID so I can check its status?", "ask_order"),
    ("Do you have the order number at hand?", "ask_order"),
    ("Please provide the order number for the purchase you'd like to cancel.", "ask_order"),
    ("What's the order ID (it starts with #W)?", "ask_order"),
    ("Thanks, Ada! And which of your orders is this about?", "ask_order"),
    ("I see several orders. Can you tell me which order you mean?", "ask_order"),
    ("Let me know the order number and I'll take it from there.", "ask_order"),
    # items
    ("Which items from that order would you like to send back?", "ask_items"),
    ("What item(s) would you like to exchange?", "ask_items"),
    ("Could you specify which product you want to return?", "ask_items"),
    (
        "Please list all the items you want to modify, since this can only be done once.",
        "ask_items",
    ),
    ("Is it the whole order, or which items exactly?", "ask_items"),
    ("Can you tell me what exactly you'd like to return?", "ask_items"),
    # options
    ("What color and size would you like instead?", "ask_options"),
    ("Which variant would you prefer as the replacement?", "ask_options"),
    ("What options would you like for the new desk lamp?", "ask_options"),
    ("Could you describe the new item you would like to have?", "ask_options"),
    ("What would you like to exchange it for?", "ask_options"),
    (
        "Do you have a preference regarding the material or colour? Please let me "
        "know your preferences.",
        "ask_options",
    ),
    ("Please tell me which specifications you want for the laptop.", "ask_options"),
    # reasons
    ("May I ask why you want to cancel?", "ask_reason"),
    ("Could you tell me the reason for the cancellation?", "ask_reason"),
    ("Is it no longer needed, or was it ordered by mistake?", "ask_reason"),
    ("Please confirm the reason: 'no longer needed' or 'ordered by mistake'.", "ask_reason"),
    ("I need to note a reason for cancelling. What's yours?", "ask_reason"),
    # payment
    ("How would you like to receive the refund?", "ask_payment"),
    ("Which payment method should I use for the price difference?", "ask_payment"),
    ("Where should the refund go: your original card or a gift card?", "ask_payment"),
    ("What payment method would you like to switch to?", "ask_payment"),
    ("Which card should I charge for the difference?", "ask_payment"),
    ("Please let me know how you'd like to pay the difference.", "ask_payment"),
    # address
    ("What's the new shipping address?", "ask_address"),
    ("Could you provide the complete new address including city, state and zip?", "ask_address"),
    ("Where should we send the parcel instead?", "ask_address"),
    ("Please share your updated address.", "ask_address"),
    ("What address would you like me to put on file?", "ask_address"),
    # more
    ("Is there anything else I can do for you today?", "ask_more"),
    ("Can I help you with anything else?", "ask_more"),
    ("Anything else you need?", "ask_more"),
    ("Do you have any other questions?", "ask_more"),
    ("Is there something else I can assist with?", "ask_more"),
    ("What else can I do for you?", "ask_more"),
    # proposals
    (
        "I'm going to cancel order #W1234567 because it's no longer needed. Do you "
        "confirm (yes/no)?",
        "propose",
    ),
    (
        "To summarize: return of the lamp (1234567890) from order #W1234567, refund "
        "to paypal_1234567. Is this correct?",
        "propose",
    ),
    (
        "Would you like me to proceed with cancelling order #W1234567, reason: ordered by mistake?",
        "propose",
    ),
    (
        "I can exchange the blender for item 9876543210, with $3.20 charged to your "
        "gift card. Shall I proceed?",
        "propose",
    ),
    (
        "Here are the details of the change: #W1234567, ship to 1 Oak Road, Boise, "
        "ID 83701. Please confirm with 'yes' to continue.",
        "propose",
    ),
    (
        "Just to be sure: you want to return the yoga block in #W1234567 and get the "
        "money on credit_card_1234567, right?",
        "propose",
    ),
    (
        "I'll update your default address to 12 Elm Street, Reno, NV 89501. Does "
        "that look good to you?",
        "propose",
    ),
    (
        "Do you want me to go ahead and switch the payment of #W1234567 to gift_card_1234567?",
        "propose",
    ),
    (
        "Order #W1234567 will be cancelled with the reason 'no longer needed'. May I go ahead?",
        "propose",
    ),
    ("Are you okay with returning both items of #W1234567 for a refund to your PayPal?", "propose"),
    (
        "**Return summary**\n- Order: #W1234567\n- Item: Tent\n- Refund: "
        "gift_card_1234567\n\nDo you agree to proceed?",
        "propose",
    ),
    (
        "So the exchange is the white mug for the black one in #W1234567, difference "
        "$2.00 to paypal_1234567. Can I submit this?",
        "propose",
    ),
    (
        "I have everything for the cancellation of #W1234567 (ordered by mistake). "
        "Ready for me to do it? Just say yes.",
        "propose",
    ),
    (
        "This would change your pending order #W1234567: keyboard to item "
        "1234567890, paid by credit_card_1234567. Everything right?",
        "propose",
    ),
    # done
    ("Your order #W1234567 has been cancelled successfully.", "done"),
    ("All done! The return was submitted and you'll get an email shortly.", "done"),
    ("I've updated the shipping address for you.", "done"),
    ("The exchange request has been processed.", "done"),
    ("Great news: the payment method is now changed.", "done"),
    ("Your default address was successfully updated.", "done"),
    ("I have gone ahead and cancelled it.", "done"),
    ("You're all set, the items were modified.", "done"),
    ("The refund has been initiated and your return is complete.", "done"),
    ("Everything is taken care of.", "done"),
    # denials
    ("I'm sorry, but this order has already been processed and can't be cancelled.", "deny"),
    ("Unfortunately, I'm unable to refund to a different card.", "deny"),
    ("I'm afraid that isn't possible under our policy.", "deny"),
    ("We do not allow exchanges across product types.", "deny"),
    ("That order belongs to someone else, so I cannot help with it.", "deny"),
    ("Regrettably I won't be able to do that.", "deny"),
    ("Our policy doesn't permit partial cancellations.", "deny"),
    ("Sorry, only pending orders can be cancelled, so I have to decline.", "deny"),
    ("I can't give personal opinions about products.", "deny"),
    ("That reason is not accepted for a cancellation.", "deny"),
    ("It's against our rules to split a payment over two methods.", "deny"),
    ("Once the items were changed, the order cannot be cancelled anymore.", "deny"),
    ("I am not able to make an exception here.", "deny"),
    ("This is not something I can offer.", "deny"),
    # unavailable
    ("The black version is currently out of stock.", "unavailable"),
    ("I'm sorry, that variant isn't available at the moment.", "unavailable"),
    ("We don't have that colour in stock right now.", "unavailable"),
    ("Unfortunately the option you asked for is unavailable.", "unavailable"),
    ("There is no available variant with those options.", "unavailable"),
    ("That size is sold out.", "unavailable"),
    # transfers
    ("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.", "transfer"),
    ("I'm transferring you to a human agent now.", "transfer"),
    ("Let me connect you with a specialist who can help.", "transfer"),
    ("I will escalate this to a colleague.", "transfer"),
    ("Please hold while I hand you over to a human representative.", "transfer"),
    # offers
    ("We could offer you the blue one instead, would that work?", "offer"),
    ("How about the 27 inch monitor as an alternative?", "offer"),
    ("Would you prefer a gift card instead?", "offer"),
    # information
    ("The total of your order is $123.45.", "inform"),
    ("Your tracking number is 123456789012.", "inform"),
    ("There are 7 variants to choose from.", "inform"),
    ("The gift card balance is 56.10 dollars.", "inform"),
    # small talk
    ("Hello! Welcome to our store.", "smalltalk"),
    ("One moment, please.", "smalltalk"),
    ("Thank you for your patience!", "smalltalk"),
    ("I understand how frustrating this is.", "smalltalk"),
    ("Got it, thanks!", "smalltalk"),
    ("Let me check that for you.", "smalltalk"),
)
